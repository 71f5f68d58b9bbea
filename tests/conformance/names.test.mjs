// Every form in which a function can be named, in every operation; and accounts and Regions as worlds of their own.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, pythonZip, ROLE, startKiln } from '../lib/kiln.mjs'

const ACCOUNT = '000000000000'
const ARN = `arn:aws:lambda:us-east-1:${ACCOUNT}:function:`
const SOURCE = 'def handler(event, context):\n    return context.invoked_function_arn\n'
let kiln
let lambda

before(async () => {
  kiln = await startKiln()
  lambda = kiln.lambda
  await createFunction(lambda, { FunctionName: 'named', Code: { ZipFile: pythonZip(SOURCE) }, Publish: true })
  await send('CreateAlias', { FunctionName: 'named', Name: 'live', FunctionVersion: '1' })
})

after(() => kiln?.stop())

function send(operation, parameters, client = lambda) {
  return client.send(new sdk[`${operation}Command`](parameters))
}

async function refusal(operation, parameters, client) {
  const error = await send(operation, parameters, client).then(() => assert.fail('not refused'), (error) => error)
  return [error.$metadata.httpStatusCode, error.name, error.message]
}

const FORMS = ['named', `${ACCOUNT}:function:named`, `${ARN}named`]

// What each operation needs beside the name, and what is done to repeat it.
const OPERATIONS = {
  GetFunction: {},
  GetFunctionConfiguration: {},
  ListVersionsByFunction: {},
  ListAliases: {},
  GetAlias: { Name: 'live' },
  UpdateAlias: { Name: 'live', Description: 'again' },
  UpdateFunctionConfiguration: { Description: 'same' },
  UpdateFunctionCode: { ZipFile: pythonZip(SOURCE) },
  PublishVersion: {},
  PutFunctionConcurrency: { ReservedConcurrentExecutions: 5 },
  GetFunctionConcurrency: {},
  DeleteFunctionConcurrency: {},
  PutFunctionEventInvokeConfig: { MaximumRetryAttempts: 0 },
  UpdateFunctionEventInvokeConfig: { MaximumRetryAttempts: 1 },
  GetFunctionEventInvokeConfig: {},
  ListFunctionEventInvokeConfigs: {},
  ListFunctionUrlConfigs: {},
  PutFunctionRecursionConfig: { RecursiveLoop: 'Allow' },
  GetFunctionRecursionConfig: {},
  PutRuntimeManagementConfig: { UpdateRuntimeOn: 'Auto' },
  GetRuntimeManagementConfig: {},
  Invoke: {},
}

for (const [operation, parameters] of Object.entries(OPERATIONS)) {
  test(`${operation} takes a name, a partial ARN and an ARN`, async () => {
    for (const FunctionName of FORMS) {
      await sdk.waitUntilFunctionUpdatedV2({ client: lambda, minDelay: 1, maxWaitTime: 20 }, { FunctionName })
      const answer = await send(operation, { FunctionName, ...parameters })
      assert.ok(answer.$metadata.httpStatusCode < 300)
    }
  })
}

test('CreateAlias and DeleteAlias take every form', async () => {
  for (const [index, FunctionName] of FORMS.entries()) {
    const alias = await send('CreateAlias', { FunctionName, Name: `a${index}`, FunctionVersion: '1' })
    assert.equal(alias.AliasArn, `${ARN}named:a${index}`)
    await send('DeleteAlias', { FunctionName, Name: `a${index}` })
  }
})

test('CreateFunction and DeleteFunction take every form', async () => {
  for (const prefix of ['', `${ACCOUNT}:function:`, ARN]) {
    const FunctionName = `${prefix}made`
    const Code = { ZipFile: pythonZip(SOURCE) }
    const made = await send('CreateFunction', { FunctionName, Code, Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE })
    assert.equal(made.FunctionArn, `${ARN}made`)
    await send('DeleteFunction', { FunctionName })
    assert.equal((await refusal('GetFunction', { FunctionName }))[1], 'ResourceNotFoundException')
  }
})

// What is made, looked at and removed again; by the name alone and with a qualifier in either place.
const HANGING = {
  policies: [['AddPermission', { StatementId: 's', Action: 'lambda:InvokeFunction', Principal: '*' }], ['GetPolicy'],
    ['RemovePermission', { StatementId: 's' }]],
  URLs: [['CreateFunctionUrlConfig', { AuthType: 'NONE' }], ['UpdateFunctionUrlConfig', { AuthType: 'AWS_IAM' }],
    ['GetFunctionUrlConfig'], ['DeleteFunctionUrlConfig']],
  'event-invoke configurations': [['PutFunctionEventInvokeConfig', { MaximumRetryAttempts: 0 }],
    ['GetFunctionEventInvokeConfig'], ['DeleteFunctionEventInvokeConfig']],
}

for (const [what, operations] of Object.entries(HANGING)) {
  test(`${what} hang on every form of a name, and on qualifiers`, async () => {
    for (const form of FORMS) {
      for (const name of [{ FunctionName: form }, { FunctionName: `${form}:live` }, { FunctionName: form, Qualifier: 'live' }]) {
        for (const [operation, parameters] of operations) {
          const { FunctionArn, Statement } = await send(operation, { ...name, ...parameters })
          const arn = FunctionArn ?? (Statement && JSON.parse(Statement).Resource)
          const qualified = name.FunctionName.endsWith(':live') || name.Qualifier === 'live'
          if (arn) assert.equal(arn.replace(':$LATEST', ''), `${ARN}named${qualified ? ':live' : ''}`)
        }
      }
    }
  })
}

test('a qualifier may be part of any form, or stand beside it', async () => {
  for (const form of FORMS) {
    for (const [Qualifier, version] of [['1', '1'], ['live', '1'], ['$LATEST', '$LATEST']]) {
      for (const parameters of [
        { FunctionName: `${form}:${Qualifier}` },
        { FunctionName: form, Qualifier },
        { FunctionName: `${form}:${Qualifier}`, Qualifier },
      ]) {
        assert.equal((await send('GetFunctionConfiguration', parameters)).Version, version)
        const { FunctionName, ...rest } = parameters
        const answer = await invoke(lambda, FunctionName, {}, rest)
        assert.equal(answer.payload, `${ARN}named:${Qualifier}`)
        assert.equal(answer.version, version)
      }
    }
  }
})

test('two qualifiers that differ are refused', async () => {
  const text = 'The derived qualifier from the function name does not match the specified qualifier.'
  for (const [operation, parameters] of Object.entries({
    GetFunction: {}, GetFunctionConfiguration: {}, Invoke: {}, DeleteFunction: {}, GetPolicy: {},
    AddPermission: { StatementId: 's', Action: '*', Principal: '*' }, RemovePermission: { StatementId: 's' },
    PutFunctionEventInvokeConfig: { MaximumRetryAttempts: 0 }, GetFunctionEventInvokeConfig: {},
    DeleteFunctionEventInvokeConfig: {}, GetRuntimeManagementConfig: {},
  })) {
    assert.deepEqual(await refusal(operation, { FunctionName: 'named:1', Qualifier: 'live', ...parameters }),
      [400, 'InvalidParameterValueException', text], operation)
  }
})

test('what is not there is named with its whole ARN', async () => {
  assert.deepEqual(await refusal('Invoke', { FunctionName: 'nobody' }),
    [404, 'ResourceNotFoundException', `Function not found: ${ARN}nobody:$LATEST`])
  assert.deepEqual(await refusal('Invoke', { FunctionName: 'named', Qualifier: '99' }),
    [404, 'ResourceNotFoundException', `Function not found: ${ARN}named:99`])
  assert.deepEqual(await refusal('GetFunction', { FunctionName: 'nobody' }),
    [404, 'ResourceNotFoundException', `Function not found: ${ARN}nobody`])
})

test('a function of another Region is out of reach, and of another account denied', async () => {
  const elsewhere = `arn:aws:lambda:eu-west-1:${ACCOUNT}:function:named`
  const others = 'arn:aws:lambda:us-east-1:222222222222:function:named'
  for (const [operation, action] of [['GetFunction', 'GetFunction'], ['Invoke', 'InvokeFunction'], ['PublishVersion', 'PublishVersion']]) {
    assert.deepEqual(await refusal(operation, { FunctionName: elsewhere }),
      [404, 'ResourceNotFoundException', "Functions from 'eu-west-1' are not reachable in this region ('us-east-1')"])
    assert.deepEqual(await refusal(operation, { FunctionName: others }), [403, 'AccessDeniedException',
      `User: arn:aws:iam::${ACCOUNT}:root is not authorized to perform: lambda:${action} on resource: ${others} ` +
        `because no resource-based policy allows the lambda:${action} action`])
  }
})

test('names that break the rules are quoted, all faults at once', async () => {
  const answer = await kiln.fetch('/2015-03-31/functions/a%20b/invocations?Qualifier=c%20d', { method: 'POST' })
  assert.equal(answer.status, 400)
  assert.equal(answer.headers.get('x-amzn-errortype'), 'ValidationException')
  const { message } = await answer.json()
  assert.match(message, /^2 validation errors detected: Value 'c d' at 'qualifier' failed .*; Value 'a b' at 'functionName' failed /)
  const long = 'n'.repeat(257)
  assert.match((await refusal('Invoke', { FunctionName: long }))[2],
    new RegExp(`Value '${long}' at 'functionName' failed to satisfy constraint: Member must have length less than or equal to 256`))
})

test('operations on the whole function refuse a qualified name', async () => {
  const text = 'This operation is permitted on Lambda functions only. Aliases and versions do not support this operation. ' +
    'Please specify either a function name or an unqualified function ARN.'
  for (const [operation, parameters] of Object.entries({
    UpdateFunctionConfiguration: {}, UpdateFunctionCode: { ZipFile: pythonZip(SOURCE) }, PublishVersion: {},
    PutFunctionConcurrency: { ReservedConcurrentExecutions: 1 },
  })) {
    assert.deepEqual(await refusal(operation, { FunctionName: 'named:1', ...parameters }),
      [400, 'InvalidParameterValueException', text], operation)
  }
})

test('accounts by a 12-digit access key and Regions are worlds of their own', async () => {
  const worlds = [
    { credentials: { accessKeyId: '111111111111', secretAccessKey: 'x' } },
    { credentials: { accessKeyId: '222222222222', secretAccessKey: 'x' } },
    { region: 'eu-central-1' },
  ].map((options) => kiln.client(options))
  for (const [index, client] of worlds.entries()) {
    assert.deepEqual((await send('ListFunctions', {}, client)).Functions, [])
    const source = `def handler(event, context):\n    return ${index}\n`
    await createFunction(client, { FunctionName: 'named', Code: { ZipFile: pythonZip(source) } })
    await send('PutFunctionConcurrency', { FunctionName: 'named', ReservedConcurrentExecutions: 900 }, client)
  }
  for (const [index, client] of worlds.entries()) {
    assert.equal((await invoke(client, 'named')).payload, index)
    const settings = await send('GetAccountSettings', {}, client)
    assert.equal(settings.AccountUsage.FunctionCount, 1)
    assert.equal(settings.AccountLimit.UnreservedConcurrentExecutions, 100)
  }
  const { FunctionArn } = await send('GetFunctionConfiguration', { FunctionName: 'named' }, worlds[0])
  assert.equal(FunctionArn, 'arn:aws:lambda:us-east-1:111111111111:function:named')
  await send('DeleteFunction', { FunctionName: 'named' }, worlds[0])
  assert.equal((await invoke(worlds[1], 'named')).payload, 1)
  assert.equal((await invoke(lambda, 'named')).payload, `${ARN}named`)
  worlds.forEach((client) => client.destroy())
})
