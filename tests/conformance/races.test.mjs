// Clients that change the same thing at once: every change is done whole or refused with the service's conflict, and what
// is shown afterwards is what one of the successful ones was told.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, pythonZip, ROLE, startKiln } from '../lib/kiln.mjs'

const CLIENTS = 12
const CODE = { ZipFile: pythonZip('def handler(event, context):\n    return 1\n') }
let kiln
before(async () => {
  kiln = await startKiln()
})
after(() => kiln?.stop())

function send(operation, parameters) {
  return kiln.lambda.send(new sdk[`${operation}Command`](parameters))
}

/** Sends `count` requests at once: { answers, refusals }; any refusal of another class than `expected` throws. */
async function race(operation, parametersOf, expected, count = CLIENTS) {
  const settled = await Promise.allSettled(Array.from({ length: count }, (_, i) => send(operation, parametersOf(i))))
  const refusals = settled.filter(({ status }) => status === 'rejected').map(({ reason }) => reason)
  for (const refusal of refusals) if (!expected.includes(refusal.name)) throw refusal
  return { answers: settled.filter(({ status }) => status === 'fulfilled').map(({ value }) => value), refusals }
}

const creation = (name, parameters) => ({
  FunctionName: name, Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: CODE, ...parameters,
})

test('of creations with one name one succeeds', async () => {
  const { answers } = await race('CreateFunction', (i) => creation('created', { Timeout: i + 1 }), ['ResourceConflictException'])
  assert.equal(answers.length, 1)
  assert.equal((await send('GetFunctionConfiguration', { FunctionName: 'created' })).Timeout, answers[0].Timeout)
})

test('of updates with one RevisionId one succeeds, and no other changes anything', async () => {
  await createFunction(kiln.lambda, creation('updated'))
  const { RevisionId } = await send('GetFunctionConfiguration', { FunctionName: 'updated' })
  const { answers, refusals } = await race(
    'UpdateFunctionConfiguration', (i) => ({ FunctionName: 'updated', Timeout: 10 + i, RevisionId }),
    ['PreconditionFailedException', 'ResourceConflictException'])
  assert.equal(answers.length, 1)
  assert.equal(refusals.length, CLIENTS - 1)
  assert.equal((await send('GetFunctionConfiguration', { FunctionName: 'updated' })).Timeout, answers[0].Timeout)
})

test('of alias updates with one RevisionId one succeeds', async () => {
  await createFunction(kiln.lambda, creation('aliased', { Publish: true }))
  const { RevisionId } = await send('CreateAlias', { FunctionName: 'aliased', Name: 'live', FunctionVersion: '1' })
  const { answers } = await race(
    'UpdateAlias', (i) => ({ FunctionName: 'aliased', Name: 'live', Description: `by ${i}`, RevisionId }),
    ['PreconditionFailedException'])
  assert.equal(answers.length, 1)
  const { $metadata: seen, ...shown } = await send('GetAlias', { FunctionName: 'aliased', Name: 'live' })
  const { $metadata: told, ...answered } = answers[0]
  assert.deepEqual(shown, answered)
})

test('publications of the same code are one version, whoever asks', async () => {
  await createFunction(kiln.lambda, creation('published'))
  const { answers } = await race('PublishVersion', () => ({ FunctionName: 'published' }), [])
  assert.deepEqual([...new Set(answers.map(({ Version }) => Version))], ['1'])
  const { Versions } = await send('ListVersionsByFunction', { FunctionName: 'published' })
  assert.deepEqual(Versions.map(({ Version }) => Version), ['$LATEST', '1'])
})

test('a version number is given once, whatever happens between', async () => {
  await createFunction(kiln.lambda, creation('numbered'))
  const numbers = []
  for (let i = 0; i < 5; i++) {
    await send('UpdateFunctionConfiguration', { FunctionName: 'numbered', Description: `${i}` })
    await sdk.waitUntilFunctionUpdatedV2({ client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { FunctionName: 'numbered' })
    const { answers } = await race('PublishVersion', () => ({ FunctionName: 'numbered' }), [], 4)
    numbers.push(...new Set(answers.map(({ Version }) => Version)))
    await send('DeleteFunction', { FunctionName: 'numbered', Qualifier: numbers.at(-1) })
  }
  assert.deepEqual(numbers, ['1', '2', '3', '4', '5'])
})

test('a deletion and changes at once: the function is gone, and each change was done before or not found', async () => {
  await createFunction(kiln.lambda, creation('deleted', { Publish: true }))
  const deletion = send('DeleteFunction', { FunctionName: 'deleted' })
  await race('CreateAlias', (i) => ({ FunctionName: 'deleted', Name: `a${i}`, FunctionVersion: '1' }), ['ResourceNotFoundException'])
  await deletion
  await assert.rejects(send('GetFunction', { FunctionName: 'deleted' }), { name: 'ResourceNotFoundException' })
  await createFunction(kiln.lambda, creation('deleted'))
  assert.deepEqual((await send('ListAliases', { FunctionName: 'deleted' })).Aliases, [])
})

test('reservations at once never leave less than the minimum', async () => {
  for (let i = 0; i < 4; i++) await createFunction(kiln.lambda, creation(`reserved-${i}`))
  const { answers } = await race(
    'PutFunctionConcurrency', (i) => ({ FunctionName: `reserved-${i}`, ReservedConcurrentExecutions: 300 }),
    ['InvalidParameterValueException'], 4)
  assert.equal(answers.length, 3)
  assert.equal((await send('GetAccountSettings', {})).AccountLimit.UnreservedConcurrentExecutions, 100)
})
