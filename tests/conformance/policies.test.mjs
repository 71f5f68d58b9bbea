// Resource policies between accounts, and what else hangs on a function: URL and event-invoke configurations, with the
// SDK's paginators and through a crash.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, pythonZip, startKiln, temporaryDirectory } from '../lib/kiln.mjs'

const OWNER = '111111111111'
const OTHER = '222222222222'
const ARN = `arn:aws:lambda:us-east-1:${OWNER}:function:shared`
const dataDir = temporaryDirectory()
let kiln
let owner
let other

async function start() {
  kiln = await startKiln({ dataDir })
  const clientOf = (account) => kiln.client({ credentials: { accessKeyId: account, secretAccessKey: 'any' } })
  owner = clientOf(OWNER)
  other = clientOf(OTHER)
}

before(async () => {
  await start()
  const source = 'def handler(event, context):\n    return context.invoked_function_arn\n'
  await createFunction(owner, { FunctionName: 'shared', Code: { ZipFile: pythonZip(source) }, Publish: true })
  await send('CreateAlias', { FunctionName: 'shared', Name: 'live', FunctionVersion: '1' })
})

after(async () => {
  await kiln?.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

function send(operation, parameters, client = owner) {
  return client.send(new sdk[`${operation}Command`](parameters))
}

/** [status, class, text] of what must be refused. */
async function refusal(promise) {
  const error = await promise.then(() => assert.fail('not refused'), (refused) => refused)
  return [error.$metadata.httpStatusCode, error.name, error.message]
}

const denied = (name) => [403, 'AccessDeniedException',
  `User: arn:aws:iam::${OTHER}:root is not authorized to perform: lambda:InvokeFunction on resource: ${name} because no ` +
  'resource-based policy allows the lambda:InvokeFunction action']

test('another account invokes only what it was let into', async () => {
  assert.deepEqual(await refusal(invoke(other, ARN)), denied(ARN))
  const permission = { StatementId: 'other', Action: 'lambda:InvokeFunction', Principal: OTHER }
  await send('AddPermission', { FunctionName: 'shared', Qualifier: 'live', ...permission })
  assert.equal((await invoke(other, `${ARN}:live`)).payload, `${ARN}:live`)
  assert.equal((await invoke(other, ARN, {}, { Qualifier: 'live' })).payload, `${ARN}:live`)
  assert.deepEqual(await refusal(invoke(other, `${ARN}:live`, {}, { LogType: 'Tail' })),
    [403, 'AccessDeniedException', 'Cross-account log access is not allowed'])
  // Neither the version behind the alias nor the function itself.
  assert.deepEqual(await refusal(invoke(other, `${ARN}:1`)), denied(`${ARN}:1`))
  assert.deepEqual(await refusal(invoke(other, ARN)), denied(ARN))
  assert.deepEqual(await refusal(invoke(other, `${ARN}:$LATEST`)), denied(`${ARN}:$LATEST`))
  await send('RemovePermission', { FunctionName: 'shared', Qualifier: 'live', StatementId: 'other' })
  assert.deepEqual(await refusal(invoke(other, `${ARN}:live`)), denied(`${ARN}:live`))
})

test('what is not there is denied like what is closed', async () => {
  const missing = ARN.replace('shared', 'missing')
  assert.deepEqual(await refusal(invoke(other, missing)), denied(missing))
  const [status, name] = await refusal(send('CreateFunctionUrlConfig', { FunctionName: missing, AuthType: 'NONE' }, other))
  assert.deepEqual([status, name], [403, 'AccessDeniedException'])
})

test('paginators show every URL and every event-invoke configuration once', async () => {
  for (const Qualifier of [undefined, 'live']) {
    await send('CreateFunctionUrlConfig', { FunctionName: 'shared', Qualifier, AuthType: 'NONE' })
    await send('PutFunctionEventInvokeConfig', { FunctionName: 'shared', Qualifier, MaximumRetryAttempts: 0 })
  }
  const collect = async (paginate, member) => {
    const arns = []
    for await (const page of paginate({ client: owner, pageSize: 1 }, { FunctionName: 'shared' }))
      arns.push(...page[member].map(({ FunctionArn }) => FunctionArn))
    return arns
  }
  assert.deepEqual(await collect(sdk.paginateListFunctionUrlConfigs, 'FunctionUrlConfigs'), [ARN, `${ARN}:live`])
  assert.deepEqual(await collect(sdk.paginateListFunctionEventInvokeConfigs, 'FunctionEventInvokeConfigs'),
    [`${ARN}:$LATEST`, `${ARN}:live`])
})

test('everything answered for is there after a crash', async () => {
  await send('AddPermission', { FunctionName: 'shared', StatementId: 'all', Action: 'lambda:*', Principal: OTHER })
  await send('PutFunctionRecursionConfig', { FunctionName: 'shared', RecursiveLoop: 'Allow' })
  await send('PutRuntimeManagementConfig', { FunctionName: 'shared', Qualifier: '1', UpdateRuntimeOn: 'FunctionUpdate' })
  const look = async () => {
    const answers = []
    for (const [operation, parameters] of [['GetPolicy'], ['GetFunctionUrlConfig', { Qualifier: 'live' }],
      ['GetFunctionEventInvokeConfig'], ['GetFunctionRecursionConfig'], ['GetRuntimeManagementConfig', { Qualifier: '1' }]]) {
      const { $metadata, FunctionUrl, ...answer } = await send(operation, { FunctionName: 'shared', ...parameters })
      answers.push({ ...answer, FunctionUrl: FunctionUrl?.split('.')[0] }) // the port may be another
    }
    return answers
  }
  const before = await look()
  await kiln.kill()
  await start()
  assert.deepEqual(await look(), before)
  assert.equal((await invoke(other, ARN)).payload, ARN)
})
