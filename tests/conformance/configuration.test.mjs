// Settings that matter outside the function: kept, merged and shown as on the service, also by a daemon that was killed.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, pythonZip, startKiln, temporaryDirectory } from '../lib/kiln.mjs'

const dataDir = temporaryDirectory()
const CODE = { ZipFile: pythonZip('def handler(event, context):\n    return 1\n') }
const SURROUNDINGS = {
  VpcConfig: { SubnetIds: ['subnet-1', 'subnet-2'], SecurityGroupIds: ['sg-1'], Ipv6AllowedForDualStack: true },
  DeadLetterConfig: { TargetArn: 'arn:aws:sqs:us-east-1:000000000000:dead' },
  TracingConfig: { Mode: 'Active' },
  LoggingConfig: { LogFormat: 'JSON', ApplicationLogLevel: 'DEBUG', LogGroup: '/own/group' },
  KMSKeyArn: 'arn:aws:kms:us-east-1:000000000000:key/one',
}
const SOURCE_KEY = 'arn:aws:kms:us-east-1:000000000000:key/two'
let kiln

const start = async (...args) => {
  kiln = await startKiln({ dataDir, args })
}
before(() => start())
after(async () => {
  await kiln?.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

function send(operation, parameters) {
  return kiln.lambda.send(new sdk[`${operation}Command`](parameters))
}

async function update(parameters) {
  const answer = await send('UpdateFunctionConfiguration', { FunctionName: 'settled', ...parameters })
  await sdk.waitUntilFunctionUpdatedV2({ client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { FunctionName: 'settled' })
  return answer
}

function assertSurroundings(shown) {
  const { VpcConfig: { VpcId, ...vpc }, LoggingConfig, ...others } = shown
  assert.deepEqual(vpc, SURROUNDINGS.VpcConfig)
  assert.match(VpcId, /^vpc-[0-9a-f]{17}$/)
  assert.deepEqual(LoggingConfig, { ...SURROUNDINGS.LoggingConfig, SystemLogLevel: 'INFO' })
  for (const name of ['DeadLetterConfig', 'TracingConfig', 'KMSKeyArn']) assert.deepEqual(others[name], SURROUNDINGS[name])
}

test('they are in every answer, of versions too, and survive a kill', async () => {
  const made = await createFunction(kiln.lambda, {
    FunctionName: 'settled', Code: { ...CODE, SourceKMSKeyArn: SOURCE_KEY }, Publish: true, ...SURROUNDINGS,
  })
  assertSurroundings(made)
  await kiln.kill()
  await start()
  const { Configuration, Code } = await send('GetFunction', { FunctionName: 'settled' })
  assertSurroundings(Configuration)
  assert.equal(Code.SourceKMSKeyArn, SOURCE_KEY)
  assert.equal(Configuration.SourceKMSKeyArn, undefined)
  assertSurroundings(await send('GetFunctionConfiguration', { FunctionName: 'settled', Qualifier: '1' }))
  assertSurroundings((await send('ListFunctions', {})).Functions[0])
})

test('an update touches what it names, and empty values take away', async () => {
  assertSurroundings(await update({ Description: 'another' }))
  const logging = (await update({ LoggingConfig: { SystemLogLevel: 'WARN' } })).LoggingConfig
  assert.deepEqual(logging, { ...SURROUNDINGS.LoggingConfig, SystemLogLevel: 'WARN' })
  const bare = await update({
    VpcConfig: { SubnetIds: [], SecurityGroupIds: [] }, DeadLetterConfig: { TargetArn: '' },
    TracingConfig: { Mode: 'PassThrough' }, LoggingConfig: { LogFormat: 'Text' }, KMSKeyArn: '',
  })
  assert.deepEqual(bare.VpcConfig, { SubnetIds: [], SecurityGroupIds: [], Ipv6AllowedForDualStack: true, VpcId: '' })
  assert.deepEqual(bare.LoggingConfig, { LogFormat: 'Text', LogGroup: '/own/group' })
  assert.deepEqual([bare.DeadLetterConfig, bare.KMSKeyArn], [undefined, undefined])
  assertSurroundings(await send('GetFunctionConfiguration', { FunctionName: 'settled', Qualifier: '1' }))
})

test('the storage for code is as large as was asked for', async () => {
  const { AccountUsage: { TotalCodeSize: used } } = await send('GetAccountSettings', {})
  await kiln.stop()
  await start('--code-storage', String(used + 1))
  const { AccountLimit } = await send('GetAccountSettings', {})
  assert.equal(AccountLimit.TotalCodeSize, used + 1)
  const creation = { FunctionName: 'more', Runtime: 'python3.12', Handler: 'index.handler', Role: 'arn:aws:iam::000000000000:role/r', Code: CODE }
  await assert.rejects(send('CreateFunction', creation), { name: 'CodeStorageExceededException', message: 'Code storage limit exceeded.' })
})
