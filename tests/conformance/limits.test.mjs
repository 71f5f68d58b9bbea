// Each limit and one past it; what is refused changes nothing.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { rememberState } from '../lib/intact.mjs'
import { createFunction, pythonZip, ROLE, startKiln, zip } from '../lib/kiln.mjs'

const SOURCE = 'def handler(event, context):\n    return 1\n'
let kiln
let lambda
let assertUnchanged

before(async () => {
  kiln = await startKiln()
  lambda = kiln.lambda
  await createFunction(lambda, { FunctionName: 'limited', Code: { ZipFile: pythonZip(SOURCE) } })
})

after(() => kiln?.stop())
beforeEach(async () => {
  assertUnchanged = await rememberState(kiln)
})
afterEach(() => assertUnchanged())

function send(operation, parameters) {
  return lambda.send(new sdk[`${operation}Command`](parameters))
}

const creation = (parameters) => ({
  FunctionName: 'made', Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile: pythonZip(SOURCE) }, ...parameters,
})

async function assertAccepted(parameters) {
  await send('CreateFunction', creation(parameters))
  await send('DeleteFunction', { FunctionName: 'made' })
}

async function assertRefused(parameters, name, text, status = 400) {
  for (const [operation, input] of [
    ['CreateFunction', creation(parameters)],
    ['UpdateFunctionConfiguration', { FunctionName: 'limited', ...parameters }],
  ]) {
    await assert.rejects(send(operation, input), (error) => {
      assert.equal(error.name, name, operation)
      assert.equal(error.$metadata.httpStatusCode, status)
      if (text instanceof RegExp) assert.match(error.message, text)
      else assert.equal(error.message, text, operation)
      return true
    })
  }
}

const outOf = (member, value, bound, number) =>
  `1 validation error detected: Value '${value}' at '${member}' failed to satisfy constraint: Member must have value ${bound} than or equal to ${number}`

test('MemorySize is 128 to 10240', async () => {
  await assertAccepted({ MemorySize: 128 })
  await assertAccepted({ MemorySize: 10240 })
  await assertRefused({ MemorySize: 127 }, 'ValidationException', outOf('memorySize', 127, 'greater', 128))
  await assertRefused({ MemorySize: 10241 }, 'ValidationException', /Value '10241' at 'memorySize' failed to satisfy constraint: Member must have value less than or equal to/)
})

test('Timeout is 1 to 900', async () => {
  await assertAccepted({ Timeout: 1 })
  await assertAccepted({ Timeout: 900 })
  await assertRefused({ Timeout: 0 }, 'ValidationException', outOf('timeout', 0, 'greater', 1))
  await assertRefused({ Timeout: 901 }, 'ValidationException', /Value '901' at 'timeout' failed to satisfy constraint: Member must have value less than or equal to 900/)
})

test('EphemeralStorage is 512 to 10240', async () => {
  await assertAccepted({ EphemeralStorage: { Size: 512 } })
  await assertAccepted({ EphemeralStorage: { Size: 10240 } })
  await assertRefused({ EphemeralStorage: { Size: 511 } }, 'ValidationException', /Value '511' at 'ephemeralStorage.size' failed .* greater than or equal to 512/)
  await assertRefused({ EphemeralStorage: { Size: 10241 } }, 'ValidationException', /Value '10241' at 'ephemeralStorage.size' failed .* less than or equal to 10240/)
})

test('Description has at most 256 characters, not bytes', async () => {
  await assertAccepted({ Description: 'ä'.repeat(256) })
  await assertRefused({ Description: 'd'.repeat(257) }, 'ValidationException',
    `1 validation error detected: Value '${'d'.repeat(257)}' at 'description' failed to satisfy constraint: Member must have length less than or equal to 256`)
})

test('Handler has at most 128 characters, FunctionName at most 64', async () => {
  await assertAccepted({ Handler: 'h'.repeat(128) })
  await assertRefused({ Handler: 'h'.repeat(129) }, 'ValidationException', /'handler' failed to satisfy constraint: Member must have length less than or equal to 128/)
  const FunctionName = 'f'.repeat(64)
  await send('CreateFunction', creation({ FunctionName }))
  await send('DeleteFunction', { FunctionName })
  await assert.rejects(send('CreateFunction', creation({ FunctionName: 'f'.repeat(65) })), /less than or equal to 64/)
})

test('the environment takes 4 KB and not a byte more', async () => {
  // {"AB":"..."}: 9 characters around the value.
  const fits = 'v'.repeat(4096 - 9)
  await assertAccepted({ Environment: { Variables: { AB: fits } } })
  await assertRefused({ Environment: { Variables: { AB: `${fits}v` } } }, 'InvalidParameterValueException',
    `Lambda was unable to configure your environment variables because the environment variables you have provided exceeded the 4KB limit. String measured: {"AB":"${fits}v"}`)
})

test('reserved names and names that are none are refused in the environment', async () => {
  await assertRefused({ Environment: { Variables: { AWS_REGION: 'x' } } }, 'InvalidParameterValueException',
    /^Lambda was unable to configure your environment variables because the environment variables you have provided contains reserved keys that are currently not supported for modification\. Reserved keys used in this request: AWS_REGION$/)
  await assertRefused({ Environment: { Variables: { '1A': 'x' } } }, 'ValidationException', /environment\.variables/)
})

test('roles, runtimes, architectures and layers are checked', async () => {
  await assertRefused({ Role: 'not-an-arn' }, 'ValidationException', /'role' failed to satisfy constraint: Member must satisfy regular expression pattern/)
  await assertRefused({ Runtime: 'cobol85' }, 'InvalidParameterValueException', /^Value cobol85 at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: \[/)
  await assert.rejects(send('CreateFunction', creation({ Architectures: ['sparc'] })), { name: 'ValidationException' })
  await assert.rejects(send('CreateFunction', creation({ Layers: ['arn:aws:lambda:us-east-1:000000000000:layer:none:1'] })),
    { name: 'InvalidParameterValueException' })
})

test('reserved concurrency leaves 100 unreserved', async () => {
  const put = (count) => send('PutFunctionConcurrency', { FunctionName: 'limited', ReservedConcurrentExecutions: count })
  await put(900)
  await assert.rejects(put(901), {
    name: 'InvalidParameterValueException',
    message: "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [100].",
  })
  await assert.rejects(put(-1), { name: 'ValidationException' })
  assert.equal((await send('GetFunctionConcurrency', { FunctionName: 'limited' })).ReservedConcurrentExecutions, 900)
  await send('DeleteFunctionConcurrency', { FunctionName: 'limited' })
  assert.equal((await send('GetFunctionConcurrency', { FunctionName: 'limited' })).ReservedConcurrentExecutions, undefined)
})

test('alias weights, versions and names are checked', async () => {
  const alias = (parameters) => send('CreateAlias', { FunctionName: 'limited', Name: 'a', FunctionVersion: '$LATEST', ...parameters })
  await assert.rejects(alias({ FunctionVersion: '7' }), { name: 'ResourceNotFoundException' })
  await assert.rejects(alias({ Name: '12' }), { name: 'ValidationException' })
  await assert.rejects(alias({ Name: 'a'.repeat(129) }), { name: 'ValidationException' })
  await assert.rejects(alias({ FunctionVersion: '$LATEST', RoutingConfig: { AdditionalVersionWeights: { 1: 0.5 } } }),
    { name: 'InvalidParameterValueException' })
  await assert.rejects(alias({ RoutingConfig: { AdditionalVersionWeights: { 1: 1.5 } } }), { name: 'ValidationException' })
})

// --- packages and requests ---

/** The archive with a comment behind it, so that it has exactly `size` bytes. */
function padded(archive, size) {
  const comment = size - archive.length
  assert.ok(comment >= 0 && comment < 16_000, `${comment} bytes are left`)
  const whole = Buffer.concat([archive, Buffer.alloc(comment, 0x20)])
  whole.writeUInt16LE(comment, archive.length - 2)
  return whole
}

/** CreateFunction without the SDK, which takes many seconds over the largest packages. */
function create(archive) {
  const body = JSON.stringify(creation({ Code: { ZipFile: archive.toString('base64') } }))
  return kiln.fetch('/2015-03-31/functions', { method: 'POST', body })
}

test('a zip must be smaller than 52,428,800 bytes', async () => {
  const archive = zip({ 'index.py': SOURCE, noise: randomBytes(52_428_800 - 20_000) })
  const refused = await create(padded(archive, 52_428_800))
  assert.equal(refused.status, 413)
  assert.equal(refused.headers.get('x-amzn-errortype'), 'RequestEntityTooLargeException')
  assert.equal((await refused.json()).Message, 'Zipped size must be smaller than 52428800 bytes')
  assert.equal((await create(padded(archive, 52_428_799))).status, 201)
  await send('DeleteFunction', { FunctionName: 'made' })
})

test('unzipped it must be smaller than 262,144,000 bytes', async () => {
  const refused = await create(zip({ zeros: Buffer.alloc(262_144_000) }))
  assert.equal(refused.status, 400)
  assert.equal(refused.headers.get('x-amzn-errortype'), 'InvalidParameterValueException')
  assert.equal((await refused.json()).message, 'Unzipped size must be smaller than 262144000 bytes')
})

test('a request of 70,167,211 bytes is read, one more is not', async () => {
  const body = JSON.stringify({ FunctionName: 'made', Role: 'r', Runtime: 'python3.12', Handler: 'h', Code: {} })
  const post = (size) => kiln.fetch('/2015-03-31/functions', { method: 'POST', body: body + ' '.repeat(size - body.length) })
  const read = await post(70_167_211)
  assert.equal(read.status, 400)
  assert.equal(read.headers.get('x-amzn-errortype'), 'ValidationException') // about the role: it was read
  const refused = await post(70_167_212)
  assert.equal(refused.status, 413)
  assert.equal(refused.headers.get('x-amzn-errortype'), 'RequestEntityTooLargeException')
  assert.ok(refused.headers.get('x-amzn-requestid'))
  assert.deepEqual(await refused.json(), { Message: 'Request must be smaller than 70167211 bytes for the CreateFunction operation' })
})
