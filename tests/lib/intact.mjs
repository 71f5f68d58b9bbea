// That a refused request has changed nothing and left nothing behind.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { paginateListFunctions } from '@aws-sdk/client-lambda'
import { waitUntil } from './kiln.mjs'

async function functions(kiln) {
  const all = []
  for await (const page of paginateListFunctions({ client: kiln.lambda }, { FunctionVersion: 'ALL' })) all.push(...page.Functions)
  return all
}

const packages = (kiln) => readdirSync(join(kiln.dataDir, 'code')).sort()
const drafts = (kiln) => packages(kiln).filter((name) => name.startsWith('.'))

/** Takes the daemon's state; the function returned holds it against the state then. */
export async function rememberState(kiln) {
  const before = { functions: await functions(kiln), packages: packages(kiln) }
  return async () => {
    // A caller that vanished may still be unpacking; what is left then is gone soon.
    await waitUntil(() => drafts(kiln).length === 0, { what: 'the end of every draft in code/' })
    assert.deepEqual(await functions(kiln), before.functions)
    await waitUntil(() => packages(kiln).length === before.packages.length, { what: 'code/ being as before' })
    assert.deepEqual(packages(kiln), before.packages)
    const health = await kiln.fetch('/_kiln/health')
    assert.equal(health.status, 200)
    assert.equal((await health.json()).concurrency, 0)
  }
}
