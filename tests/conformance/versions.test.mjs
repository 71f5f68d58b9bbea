// Waiters, paginators, versions, aliases and revisions.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, pythonZip, ROLE, startKiln, temporaryDirectory } from '../lib/kiln.mjs'
import { createProbe, probeZip } from '../lib/probe.mjs'

const source = (value) => pythonZip(`def handler(event, context):\n    return ${JSON.stringify(value)}\n`)
const WAIT = { minDelay: 1, maxDelay: 1, maxWaitTime: 30 }
let kiln
let lambda

before(async () => {
  kiln = await startKiln()
  lambda = kiln.lambda
})

after(() => kiln?.stop())

function send(operation, parameters, client = lambda) {
  return client.send(new sdk[`${operation}Command`](parameters))
}

function updated(FunctionName, client = lambda) {
  return sdk.waitUntilFunctionUpdatedV2({ client, ...WAIT }, { FunctionName })
}

async function update(FunctionName, ZipFile, client = lambda) {
  await send('UpdateFunctionCode', { FunctionName, ZipFile }, client)
  await updated(FunctionName, client)
}

test('every waiter of the SDK ends as it should', async () => {
  const input = { FunctionName: 'waited' }
  const wait = (waiter, parameters = input) => sdk[`waitUntil${waiter}`]({ client: lambda, ...WAIT }, parameters)
  await assert.rejects(sdk.waitForFunctionExists({ client: lambda, ...WAIT, maxWaitTime: 2 }, input).then((result) => {
    if (result.state !== 'SUCCESS') throw new Error(result.state)
  }), /TIMEOUT/)
  const creating = send('CreateFunction', { ...input, Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile: source(1) }, Publish: true })
  assert.equal((await wait('FunctionExists')).state, 'SUCCESS')
  await creating
  assert.equal((await wait('FunctionActive')).state, 'SUCCESS')
  assert.equal((await wait('FunctionActiveV2')).state, 'SUCCESS')
  assert.equal((await wait('PublishedVersionActive', { ...input, Qualifier: '1' })).state, 'SUCCESS')
  await send('UpdateFunctionConfiguration', { ...input, Timeout: 7 })
  assert.equal((await wait('FunctionUpdated')).state, 'SUCCESS')
  await send('UpdateFunctionCode', { ...input, ZipFile: source(2) })
  assert.equal((await wait('FunctionUpdatedV2')).state, 'SUCCESS')
  assert.equal((await send('GetFunctionConfiguration', input)).Timeout, 7)
})

test('the paginators of the SDK see everything once', async () => {
  const client = kiln.client({ region: 'eu-west-3' })
  const names = Array.from({ length: 23 }, (_, i) => `page-${String(i).padStart(2, '0')}`)
  const Code = { ZipFile: probeZip() }
  for (const FunctionName of names) {
    await send('CreateFunction', { FunctionName, Runtime: 'provided.al2023', Handler: 'x', Role: ROLE, Code }, client)
  }
  const collect = async (paginate, parameters, member, key) => {
    const seen = []
    let pages = 0
    for await (const page of paginate({ client, pageSize: 5 }, parameters)) {
      assert.ok(page[member].length <= 5)
      seen.push(...page[member].map((item) => item[key]))
      pages++
    }
    return { seen, pages }
  }
  const functions = await collect(sdk.paginateListFunctions, {}, 'Functions', 'FunctionName')
  assert.deepEqual(functions.seen.sort(), names)
  assert.equal(functions.pages, 5)
  const FunctionName = names[0]
  await sdk.waitUntilFunctionActiveV2({ client, ...WAIT }, { FunctionName })
  for (let i = 1; i <= 7; i++) {
    await send('UpdateFunctionConfiguration', { FunctionName, Description: String(i) }, client)
    await updated(FunctionName, client)
    assert.equal((await send('PublishVersion', { FunctionName }, client)).Version, String(i))
    await send('CreateAlias', { FunctionName, Name: `alias-${i}`, FunctionVersion: String(i) }, client)
  }
  const versions = await collect(sdk.paginateListVersionsByFunction, { FunctionName }, 'Versions', 'Version')
  assert.deepEqual(versions.seen, ['$LATEST', '1', '2', '3', '4', '5', '6', '7'])
  const aliases = await collect(sdk.paginateListAliases, { FunctionName }, 'Aliases', 'Name')
  assert.deepEqual(aliases.seen, Array.from({ length: 7 }, (_, i) => `alias-${i + 1}`))
  const all = await collect(sdk.paginateListFunctions, { FunctionVersion: 'ALL' }, 'Functions', 'Version')
  assert.equal(all.seen.length, 23 + 7)
  client.destroy()
})

test('an alias with weights sends its share to the second version', async () => {
  const FunctionName = 'weighted'
  await createProbe(lambda, FunctionName, { Publish: true })
  await send('UpdateFunctionConfiguration', { FunctionName, Description: 'two' })
  await updated(FunctionName)
  await send('PublishVersion', { FunctionName })
  const RoutingConfig = { AdditionalVersionWeights: { 2: 0.25 } }
  await send('CreateAlias', { FunctionName, Name: 'split', FunctionVersion: '1', RoutingConfig })
  const counts = { 1: 0, 2: 0 }
  for (let i = 0; i < 400; i++) counts[(await invoke(lambda, FunctionName, {}, { Qualifier: 'split' })).version]++
  assert.equal(counts[1] + counts[2], 400)
  // Five standard deviations around 100 of 400: off by chance once in two million runs.
  assert.ok(counts[2] > 56 && counts[2] < 144, `${counts[2]} of 400 went to version 2`)
  await send('UpdateAlias', { FunctionName, Name: 'split', RoutingConfig: { AdditionalVersionWeights: { 2: 1 } } })
  for (let i = 0; i < 20; i++) assert.equal((await invoke(lambda, FunctionName, {}, { Qualifier: 'split' })).version, '2')
  await send('UpdateAlias', { FunctionName, Name: 'split', RoutingConfig: { AdditionalVersionWeights: {} } })
  assert.equal((await send('GetAlias', { FunctionName, Name: 'split' })).RoutingConfig, undefined)
  for (let i = 0; i < 20; i++) assert.equal((await invoke(lambda, FunctionName, {}, { Qualifier: 'split' })).version, '1')
})

test('publishing what has not changed gives the same version again', async () => {
  const FunctionName = 'published'
  await createFunction(lambda, { FunctionName, Code: { ZipFile: source(1) } })
  const first = await send('PublishVersion', { FunctionName, Description: 'first' })
  const second = await send('PublishVersion', { FunctionName, Description: 'second' })
  assert.equal(second.Version, '1')
  assert.equal(second.Description, 'first')
  assert.equal(second.RevisionId, first.RevisionId)
  await update(FunctionName, source(2))
  assert.equal((await send('PublishVersion', { FunctionName })).Version, '2')
  await update(FunctionName, source(1))
  assert.equal((await send('PublishVersion', { FunctionName })).Version, '3', 'compared with the last version only')
  assert.equal((await invoke(lambda, FunctionName, {}, { Qualifier: '1' })).payload, 1)
  assert.equal((await invoke(lambda, FunctionName, {}, { Qualifier: '2' })).payload, 2)
})

test("a version's number is never used again, not even after a restart", async () => {
  const dataDir = temporaryDirectory()
  let own = await startKiln({ dataDir })
  const FunctionName = 'numbered'
  await createFunction(own.lambda, { FunctionName, Code: { ZipFile: source(1) }, Publish: true })
  await update(FunctionName, source(2), own.lambda)
  assert.equal((await send('PublishVersion', { FunctionName }, own.lambda)).Version, '2')
  await send('DeleteFunction', { FunctionName, Qualifier: '2' }, own.lambda)
  await own.stop()
  own = await startKiln({ dataDir })
  assert.equal((await send('PublishVersion', { FunctionName }, own.lambda)).Version, '3')
  await send('DeleteFunction', { FunctionName, Qualifier: '3' }, own.lambda)
  await own.kill()
  own = await startKiln({ dataDir })
  await update(FunctionName, source(4), own.lambda)
  assert.equal((await send('PublishVersion', { FunctionName }, own.lambda)).Version, '4')
  const listed = (await send('ListVersionsByFunction', { FunctionName }, own.lambda)).Versions.map(({ Version }) => Version)
  assert.deepEqual(listed, ['$LATEST', '1', '4'])
  await own.stop()
  rmSync(dataDir, { recursive: true })
})

test('a RevisionId that is not the newest refuses the change and changes nothing', async () => {
  const FunctionName = 'revised'
  const created = await createFunction(lambda, { FunctionName, Code: { ZipFile: source(1) } })
  const { RevisionId } = await send('GetFunctionConfiguration', { FunctionName })
  assert.notEqual(RevisionId, created.RevisionId, 'becoming Active is a revision')
  const stale = created.RevisionId
  const attempts = [
    ['UpdateFunctionConfiguration', { Description: 'x' }],
    ['UpdateFunctionCode', { ZipFile: source(2) }],
    ['PublishVersion', {}],
  ]
  for (const [operation, parameters] of attempts) {
    await assert.rejects(send(operation, { FunctionName, ...parameters, RevisionId: stale }), (error) => {
      assert.equal(error.name, 'PreconditionFailedException')
      assert.equal(error.$metadata.httpStatusCode, 412)
      assert.match(error.message, /^The Revision Id provided does not match the latest Revision Id\. Call the GetFunction/)
      return true
    }, operation)
  }
  assert.equal((await send('GetFunctionConfiguration', { FunctionName })).RevisionId, RevisionId)
  await send('UpdateFunctionConfiguration', { FunctionName, Description: 'x', RevisionId })
  await updated(FunctionName)
  const alias = await send('PublishVersion', { FunctionName }).then(() =>
    send('CreateAlias', { FunctionName, Name: 'live', FunctionVersion: '1' }))
  const moved = await send('UpdateAlias', { FunctionName, Name: 'live', Description: 'y', RevisionId: alias.RevisionId })
  assert.notEqual(moved.RevisionId, alias.RevisionId)
  await assert.rejects(send('UpdateAlias', { FunctionName, Name: 'live', RevisionId: alias.RevisionId }),
    { name: 'PreconditionFailedException' })
})

test('DryRun of an update changes nothing', async () => {
  const FunctionName = 'dry'
  await createFunction(lambda, { FunctionName, Code: { ZipFile: source(1) } })
  const earlier = await send('GetFunctionConfiguration', { FunctionName })
  const answer = await send('UpdateFunctionCode', { FunctionName, ZipFile: source(2), DryRun: true })
  assert.notEqual(answer.CodeSha256, earlier.CodeSha256)
  const { $metadata: ignored, ...later } = await send('GetFunctionConfiguration', { FunctionName })
  const { $metadata: ignoredToo, ...before } = earlier
  assert.deepEqual(later, before)
  assert.equal((await invoke(lambda, FunctionName)).payload, 1)
})
