// The daemon's end while requests are under way: each is answered or broken off, and nothing is left half done.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, pythonZip, ROLE, sleep, startKiln, temporaryDirectory, waitUntil, zip } from '../lib/kiln.mjs'
import { openRaw } from '../lib/raw_http.mjs'

const SLOW = pythonZip('import time\ndef handler(event, context):\n    time.sleep(event)\n    return event\n')

/** A daemon that does not outlive the test, should that fail before it stops it. */
async function start(t, options) {
  const kiln = await startKiln(options)
  t.after(() => kiln.child.kill('SIGKILL'))
  return kiln
}

function creation(FunctionName, ZipFile) {
  return new sdk.CreateFunctionCommand({ FunctionName, Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile } })
}

async function inFlight(kiln, count) {
  const concurrency = async () => (await (await kiln.fetch('/_kiln/health')).json()).concurrency
  await waitUntil(async () => (await concurrency()) === count, { what: `${count} invokes under way` })
}

test('SIGTERM lets invokes under way end, and answers them', async (t) => {
  const kiln = await start(t)
  await createFunction(kiln.lambda, { FunctionName: 'slow', Code: { ZipFile: SLOW }, Timeout: 20 })
  const running = [invoke(kiln.lambda, 'slow', 2), invoke(kiln.lambda, 'slow', 3)]
  const { socket } = await openRaw(kiln.port) // idle, and must not hold the end up
  await inFlight(kiln, 2)
  const stopped = kiln.stop()
  assert.deepEqual((await Promise.all(running)).map(({ payload }) => payload), [2, 3])
  await stopped
  socket.destroy()
})

test('a second signal breaks everything off at once, in order', async (t) => {
  const kiln = await start(t)
  await createFunction(kiln.lambda, { FunctionName: 'slow', Code: { ZipFile: SLOW }, Timeout: 60 })
  const running = invoke(kiln.lambda, 'slow', 50).catch((error) => error)
  await inFlight(kiln, 1)
  kiln.child.kill('SIGTERM')
  await waitUntil(() => kiln.log.includes('stopping on signal'), { what: 'the first signal being seen' })
  await kiln.stop()
  assert.ok((await running) instanceof Error)
})

test('an operation under way when all is broken off is done whole or not at all', async (t) => {
  const dataDir = temporaryDirectory()
  for (let round = 0; round < 6; round++) {
    const kiln = await start(t, { dataDir })
    const archive = zip({ 'index.py': `# ${round}`, noise: randomBytes(4 << 20) })
    const creating = Promise.allSettled([0, 1, 2, 3].map((lane) => kiln.lambda.send(creation(`f-${round}-${lane}`, archive))))
    await sleep(40 * round) // somewhere between the upload, the unpacking and the answer
    kiln.child.kill('SIGTERM')
    await waitUntil(() => kiln.log.includes('stopping on signal'), { intervalMs: 1, what: 'the first signal being seen' })
    await kiln.stop()
    await creating
  }
  const kiln = await start(t, { dataDir })
  const drafts = () => readdirSync(join(dataDir, 'code')).filter((name) => name.startsWith('.'))
  await waitUntil(() => drafts().length === 0, { what: 'the end of every draft' })
  const { Functions } = await kiln.lambda.send(new sdk.ListFunctionsCommand({}))
  for (const { FunctionName } of Functions) {
    await sdk.waitUntilFunctionActiveV2({ client: kiln.lambda, minDelay: 1, maxWaitTime: 20 }, { FunctionName })
  }
  const wanted = new Set(Functions.map(({ CodeSha256 }) => Buffer.from(CodeSha256, 'base64').toString('hex')))
  const kept = new Set(readdirSync(join(dataDir, 'code')).map((name) => name.replace('.zip', '')))
  assert.deepEqual(kept, wanted)
  await kiln.stop()
  rmSync(dataDir, { recursive: true })
})
