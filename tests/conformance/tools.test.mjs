// The calls that tools for infrastructure make one after the other for a function with all that belongs to it: what is
// created is read back attribute by attribute, a second run finds nothing to change, and at the end nothing is left.
// (The sequences of Terraform's AWS provider for aws_iam_role, aws_lambda_function, _alias, _permission, ...)
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as iam from '@aws-sdk/client-iam'
import * as sdk from '@aws-sdk/client-lambda'
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts'
import { invoke, pythonZip, startKiln } from '../lib/kiln.mjs'

const VERSION = (text) => pythonZip(`def handler(event, context):\n    return "${text}"\n`)
const TRUST = JSON.stringify({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
})
const LOGS = 'arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole'
const FunctionName = 'web'
let kiln
let roles
let role

before(async () => {
  kiln = await startKiln()
  roles = new iam.IAMClient({ endpoint: kiln.endpoint, region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' }, maxAttempts: 1 })
})
after(() => kiln?.stop())

const send = (operation, parameters) => kiln.lambda.send(new sdk[`${operation}Command`](parameters))
const ask = (operation, parameters) => roles.send(new iam[`${operation}Command`](parameters))
const wait = { get client() { return kiln.lambda }, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }
const notFound = (promise) => assert.rejects(promise, { name: 'ResourceNotFoundException' })

/** What the provider reads after each change of the function. */
async function readFunction(parameters = {}) {
  const { Configuration, Code, Concurrency, Tags } = await send('GetFunction', { FunctionName, ...parameters })
  assert.match(Code.Location, /^http/)
  const { Versions } = await send('ListVersionsByFunction', { FunctionName, MaxItems: 10000 })
  const signing = await send('GetFunctionCodeSigningConfig', { FunctionName })
  assert.equal(signing.CodeSigningConfigArn ?? '', '')
  return { ...Configuration, Concurrency, Tags, newest: Versions.at(-1).Version }
}

test('who am I, and a role to run as', async () => {
  const sts = new STSClient({ endpoint: kiln.endpoint, region: 'us-east-1', credentials: { accessKeyId: 'test', secretAccessKey: 'test' } })
  assert.equal((await sts.send(new GetCallerIdentityCommand({}))).Account, '000000000000')
  role = (await ask('CreateRole', { RoleName: 'web-role', AssumeRolePolicyDocument: TRUST })).Role.Arn
  await ask('AttachRolePolicy', { RoleName: 'web-role', PolicyArn: LOGS })
  assert.equal((await ask('GetRole', { RoleName: 'web-role' })).Role.Arn, role)
  assert.deepEqual((await ask('ListAttachedRolePolicies', { RoleName: 'web-role' })).AttachedPolicies.map(({ PolicyArn }) => PolicyArn), [LOGS])
  assert.deepEqual((await ask('ListRolePolicies', { RoleName: 'web-role' })).PolicyNames, [])
})

const DECLARED = {
  Runtime: 'python3.12', Handler: 'index.handler', Description: 'declared', Timeout: 10, MemorySize: 256,
  Environment: { Variables: { STAGE: 'prod' } }, TracingConfig: { Mode: 'Active' }, EphemeralStorage: { Size: 1024 },
  LoggingConfig: { LogFormat: 'JSON', ApplicationLogLevel: 'INFO', SystemLogLevel: 'WARN', LogGroup: '/web' },
  DeadLetterConfig: { TargetArn: 'arn:aws:sqs:us-east-1:000000000000:dead' },
}

test('a function is created as declared', async () => {
  await send('CreateFunction', { FunctionName, Role: role, Code: { ZipFile: VERSION('one') }, Publish: true, Tags: { team: 'web' }, PackageType: 'Zip', Architectures: ['x86_64'], ...DECLARED })
  await sdk.waitUntilFunctionActiveV2(wait, { FunctionName })
  await send('PutFunctionConcurrency', { FunctionName, ReservedConcurrentExecutions: 7 })
  const read = await readFunction()
  for (const [name, value] of Object.entries(DECLARED)) assert.deepEqual(read[name], value, name)
  assert.deepEqual([read.Role, read.newest, read.Tags, read.Concurrency], [role, '1', { team: 'web' }, { ReservedConcurrentExecutions: 7 }])
})

test('what hangs on it is created and read back', async () => {
  const alias = await send('CreateAlias', { FunctionName, Name: 'live', FunctionVersion: '1', Description: '' })
  assert.equal((await send('GetAlias', { FunctionName, Name: 'live' })).AliasArn, alias.AliasArn)
  await send('AddPermission', {
    FunctionName, Qualifier: 'live', StatementId: 'gateway', Action: 'lambda:InvokeFunction', Principal: 'apigateway.amazonaws.com',
    SourceArn: 'arn:aws:execute-api:us-east-1:000000000000:api/*/*',
  })
  const { Policy } = await send('GetPolicy', { FunctionName, Qualifier: 'live' })
  assert.equal(JSON.parse(Policy).Statement[0].Sid, 'gateway')
  const { FunctionUrl } = await send('CreateFunctionUrlConfig', { FunctionName, Qualifier: 'live', AuthType: 'NONE' })
  assert.equal((await send('GetFunctionUrlConfig', { FunctionName, Qualifier: 'live' })).FunctionUrl, FunctionUrl)
  await send('PutFunctionEventInvokeConfig', { FunctionName, Qualifier: 'live', MaximumRetryAttempts: 0 })
  assert.equal((await send('GetFunctionEventInvokeConfig', { FunctionName, Qualifier: 'live' })).MaximumRetryAttempts, 0)
  await send('PutProvisionedConcurrencyConfig', { FunctionName, Qualifier: 'live', ProvisionedConcurrentExecutions: 1 })
  for (;;) if ((await send('GetProvisionedConcurrencyConfig', { FunctionName, Qualifier: 'live' })).Status === 'READY') break
  const { UUID } = await send('CreateEventSourceMapping', { FunctionName, EventSourceArn: 'arn:aws:sqs:us-east-1:000000000000:jobs', Enabled: false })
  assert.equal((await send('GetEventSourceMapping', { UUID })).State, 'Disabled')
  assert.equal((await invoke(kiln.lambda, `${FunctionName}:live`)).payload, 'one')
})

test('a change is an update of the configuration, of the code, of tags and of the alias', async () => {
  await send('UpdateFunctionConfiguration', { FunctionName, Role: role, ...DECLARED, Timeout: 20, DeadLetterConfig: { TargetArn: '' } })
  await sdk.waitUntilFunctionUpdatedV2(wait, { FunctionName })
  const { Version } = await send('UpdateFunctionCode', { FunctionName, ZipFile: VERSION('two'), Publish: true, Architectures: ['x86_64'] })
  await sdk.waitUntilFunctionUpdatedV2(wait, { FunctionName })
  const Resource = `arn:aws:lambda:us-east-1:000000000000:function:${FunctionName}`
  await send('TagResource', { Resource, Tags: { team: 'core', cost: '1' } })
  await send('UntagResource', { Resource, TagKeys: ['cost'] })
  await send('UpdateAlias', { FunctionName, Name: 'live', FunctionVersion: Version })
  const read = await readFunction()
  assert.deepEqual([read.Timeout, read.DeadLetterConfig, read.newest, read.Tags], [20, undefined, '2', { team: 'core' }])
  assert.equal((await invoke(kiln.lambda, `${FunctionName}:live`)).payload, 'two')
})

test('a second run finds everything as it is declared', async () => {
  const [first, second] = [await readFunction({ Qualifier: 'live' }), await readFunction({ Qualifier: 'live' })]
  assert.deepEqual(second, first)
})

test('destruction leaves nothing, and what is gone is not found', async () => {
  const { EventSourceMappings: [{ UUID }] } = await send('ListEventSourceMappings', { FunctionName })
  await send('DeleteEventSourceMapping', { UUID })
  await send('DeleteProvisionedConcurrencyConfig', { FunctionName, Qualifier: 'live' })
  await send('DeleteFunctionEventInvokeConfig', { FunctionName, Qualifier: 'live' })
  await send('DeleteFunctionUrlConfig', { FunctionName, Qualifier: 'live' })
  await send('RemovePermission', { FunctionName, Qualifier: 'live', StatementId: 'gateway' })
  await notFound(send('GetPolicy', { FunctionName, Qualifier: 'live' }))
  await send('DeleteAlias', { FunctionName, Name: 'live' })
  await send('DeleteFunction', { FunctionName })
  await notFound(send('GetFunction', { FunctionName }))
  await notFound(send('GetEventSourceMapping', { UUID }))
  await ask('DetachRolePolicy', { RoleName: 'web-role', PolicyArn: LOGS })
  await ask('DeleteRole', { RoleName: 'web-role' })
  assert.deepEqual((await send('ListFunctions', {})).Functions, [])
  assert.equal((await send('GetAccountSettings', {})).AccountUsage.TotalCodeSize, 0)
})
