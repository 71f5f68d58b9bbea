// Pages of every list, with the SDK's paginators: all there is, each once, whatever the size of the page, and the same
// rules for MaxItems and Marker everywhere.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, pythonZip, startKiln, zip } from '../lib/kiln.mjs'

const CODE = { ZipFile: pythonZip('def handler(event, context): pass') }
const NAMES = ['a', 'b', 'c']
let kiln
let configArn
const send = (operation, parameters = {}) => kiln.lambda.send(new sdk[`${operation}Command`](parameters))

/** Three of everything that is listed. */
before(async () => {
  kiln = await startKiln()
  const config = await send('CreateCodeSigningConfig', { AllowedPublishers: { SigningProfileVersionArns: ['arn:aws:signer:us-east-1:000000000000:/signing-profiles/p'] } })
  configArn = config.CodeSigningConfig.CodeSigningConfigArn
  for (const name of NAMES) {
    await createFunction(kiln.lambda, { FunctionName: name, Code: CODE, CodeSigningConfigArn: configArn })
    await send('PublishLayerVersion', { LayerName: name, Content: { ZipFile: zip({ name }) } })
    await send('PublishLayerVersion', { LayerName: 'a', Content: { ZipFile: zip({ name }) } })
    if (name !== 'a') await send('CreateCodeSigningConfig', { AllowedPublishers: { SigningProfileVersionArns: ['arn:aws:signer:us-east-1:000000000000:/signing-profiles/p'] } })
    await send('PublishVersion', { FunctionName: 'a', Description: name })
    await send('UpdateFunctionConfiguration', { FunctionName: 'a', Description: `next to ${name}` })
    await sdk.waitUntilFunctionUpdatedV2({ client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { FunctionName: 'a' })
    await send('CreateAlias', { FunctionName: 'a', Name: name, FunctionVersion: '1' })
    await send('PutFunctionEventInvokeConfig', { FunctionName: 'a', Qualifier: name, MaximumRetryAttempts: 1 })
    await send('CreateFunctionUrlConfig', { FunctionName: 'a', Qualifier: name, AuthType: 'NONE' })
    await send('PutProvisionedConcurrencyConfig', { FunctionName: 'a', Qualifier: name, ProvisionedConcurrentExecutions: 1 })
    await send('CreateEventSourceMapping', { FunctionName: name, EventSourceArn: `arn:aws:sqs:us-east-1:000000000000:${name}` })
  }
})
after(() => kiln?.stop())

// Operation -> [the member with the rows, how many there are, the greatest MaxItems, parameters]
const LISTS = {
  ListFunctions: ['Functions', 3, 10_000],
  ListVersionsByFunction: ['Versions', 4, 10_000, () => ({ FunctionName: 'a' })],
  ListAliases: ['Aliases', 3, 10_000, () => ({ FunctionName: 'a' })],
  ListLayers: ['Layers', 3, 50],
  ListLayerVersions: ['LayerVersions', 4, 50, () => ({ LayerName: 'a' })],
  ListCodeSigningConfigs: ['CodeSigningConfigs', 3, 10_000],
  ListFunctionsByCodeSigningConfig: ['FunctionArns', 3, 10_000, () => ({ CodeSigningConfigArn: configArn })],
  ListFunctionEventInvokeConfigs: ['FunctionEventInvokeConfigs', 3, 50, () => ({ FunctionName: 'a' })],
  ListFunctionUrlConfigs: ['FunctionUrlConfigs', 3, 50, () => ({ FunctionName: 'a' })],
  ListProvisionedConcurrencyConfigs: ['ProvisionedConcurrencyConfigs', 3, 50, () => ({ FunctionName: 'a' })],
  ListEventSourceMappings: ['EventSourceMappings', 3, 10_000],
}

/** What a row is about; its state may change between two pages. */
function identity(row) {
  return row.UUID ?? row.LayerVersionArn ?? row.LayerArn ?? row.CodeSigningConfigArn ?? row.AliasArn ?? `${row.FunctionArn ?? row} ${row.Version}`
}

for (const [operation, [member, count, greatest, parameters = () => ({})]] of Object.entries(LISTS)) {
  describe(operation, () => {
    async function pages(pageSize) {
      const found = []
      for await (const page of sdk[`paginate${operation}`]({ client: kiln.lambda, pageSize }, parameters())) found.push(page[member].map(identity))
      return found
    }

    test('every row once, whatever the size of a page', async () => {
      const [all, ...none] = await pages(undefined)
      assert.deepEqual([all.length, none.length], [count, 0])
      for (const size of [1, 2, count]) {
        const split = await pages(size)
        assert.deepEqual(split.flat(), all)
        assert.deepEqual(split.map((page) => page.length), Array.from({ length: Math.ceil(count / size) }, (_, i) => Math.min(size, count - i * size)))
      }
    })

    test(`MaxItems is 1 to ${greatest}`, async () => {
      assert.equal((await send(operation, { ...parameters(), MaxItems: greatest }))[member].length, count)
      const says = (value, which, limit) => ({
        name: 'ValidationException',
        message: `1 validation error detected: Value '${value}' at 'maxItems' failed to satisfy constraint: Member must have value ${which} than or equal to ${limit}`,
      })
      await assert.rejects(send(operation, { ...parameters(), MaxItems: 0 }), says(0, 'greater', 1))
      await assert.rejects(send(operation, { ...parameters(), MaxItems: greatest + 1 }), says(greatest + 1, 'less', greatest))
    })

    test('a Marker that is none is refused, behind what the model states', async () => {
      const Marker = 'not a marker!'
      await assert.rejects(send(operation, { ...parameters(), Marker }), { name: 'InvalidParameterValueException', message: `Invalid Marker: ${Marker}` })
      await assert.rejects(send(operation, { ...parameters(), Marker, MaxItems: 0 }), { name: 'ValidationException' })
    })
  })
}

describe('ListFunctions', () => {
  test('ALL shows every version of every function, across pages', async () => {
    const arns = []
    for await (const { Functions } of sdk.paginateListFunctions({ client: kiln.lambda, pageSize: 2 }, { FunctionVersion: 'ALL' })) {
      arns.push(...Functions.map(({ FunctionArn }) => FunctionArn.replace(/.*:function:/, '')))
    }
    assert.deepEqual(arns, ['a:$LATEST', 'a:1', 'a:2', 'a:3', 'b:$LATEST', 'c:$LATEST'])
  })

  test('a page goes on behind a function that is gone', async () => {
    const { NextMarker } = await send('ListFunctions', { MaxItems: 2 })
    await send('DeleteFunction', { FunctionName: 'b' })
    const { Functions } = await send('ListFunctions', { Marker: NextMarker })
    assert.deepEqual(Functions.map(({ FunctionName }) => FunctionName), ['c'])
  })

  test('MasterRegion needs all versions, and names no function of this Region', async () => {
    await assert.rejects(send('ListFunctions', { MasterRegion: 'us-east-1' }), {
      name: 'InvalidParameterValueException',
      message: 'The combination MasterArn=us-east-1 and FunctionVersion=NULL is not supported. Please see our documentation for valid combinations of ListFunctions options.',
    })
    assert.deepEqual((await send('ListFunctions', { MasterRegion: 'us-east-1', FunctionVersion: 'ALL' })).Functions, [])
    assert.equal((await send('ListFunctions', { MasterRegion: 'ALL', FunctionVersion: 'ALL' })).Functions.length, 5)
  })
})
