// What a synchronous invoke gives back, and how changes of the function meet invokes under way.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, pythonZip, ROLE, sleep, startKiln, waitUntil } from '../lib/kiln.mjs'

const SOURCE = `import sys, time
def handler(event, context):
    if not isinstance(event, dict):
        return event
    if "lines" in event:
        for i in range(event["lines"]):
            print("%06d " % i + "z" * 93)
    if "print" in event:
        print(event["print"])
    if "raise" in event:
        raise ValueError(event["raise"])
    if "sleep" in event:
        time.sleep(event["sleep"])
    if "context" in event:
        c = context.client_context
        return {"id": context.aws_request_id, "custom": c and c.custom, "env": c and c.env,
                "title": c and c.client and c.client.app_title}
    return event
`
const LOCATION = '[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line:'
const INVALID = 'Could not parse request body into json: Could not parse payload into json: '
let kiln
let lambda

before(async () => {
  kiln = await startKiln()
  lambda = kiln.lambda
  await createFunction(lambda, { FunctionName: 'echo', Code: { ZipFile: pythonZip(SOURCE) }, Timeout: 30, Publish: true })
})

after(() => kiln?.stop())

function send(operation, parameters) {
  return lambda.send(new sdk[`${operation}Command`](parameters))
}

function post(body, headers = {}, name = 'echo') {
  return kiln.fetch(`/2015-03-31/functions/${name}/invocations`, { method: 'POST', body, headers })
}

async function concurrency() {
  return (await (await kiln.fetch('/_kiln/health')).json()).concurrency
}

test('the answer carries what the service sends', async () => {
  const answer = await post('{"a":1}')
  assert.equal(answer.status, 200)
  assert.equal(await answer.text(), '{"a": 1}')
  assert.equal(answer.headers.get('x-amz-executed-version'), '$LATEST')
  assert.match(answer.headers.get('x-amzn-requestid'), /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.match(answer.headers.get('x-amzn-trace-id'), /^Root=1-[0-9a-f]{8}-[0-9a-f]{24}/i)
  assert.equal(answer.headers.get('x-amz-function-error'), null)
  assert.equal(answer.headers.get('x-amz-log-result'), null)
  assert.equal((await invoke(lambda, 'echo', {}, { Qualifier: '1' })).version, '1')
})

test('DryRun answers 204 and runs nothing', async () => {
  await createFunction(lambda, { FunctionName: 'dry', Code: { ZipFile: pythonZip('raise Exception()\n') } })
  const before = (await (await kiln.fetch('/_kiln/health')).json()).environments
  const answer = await invoke(lambda, 'dry', {}, { InvocationType: 'DryRun' })
  assert.equal(answer.status, 204)
  assert.equal(answer.text, '')
  assert.equal((await (await kiln.fetch('/_kiln/health')).json()).environments, before)
  await assert.rejects(invoke(lambda, 'nobody', {}, { InvocationType: 'DryRun' }), { name: 'ResourceNotFoundException' })
})

test('LogType Tail returns START, the lines, END and REPORT', async () => {
  const { log } = await invoke(lambda, 'echo', { print: 'hello Wörld' }, { LogType: 'Tail' })
  const id = log.match(/^START RequestId: (\S+) Version: \$LATEST\n/)[1]
  assert.match(log, new RegExp(`^START RequestId: ${id} Version: \\$LATEST\nhello Wörld\nEND RequestId: ${id}\n` +
    `REPORT RequestId: ${id}\tDuration: [0-9.]+ ms\tBilled Duration: [0-9]+ ms\tMemory Size: 128 MB\tMax Memory Used: [0-9]+ MB\t(Init Duration: [0-9.]+ ms\t)?\n$`))
})

test('the log tail is the last 4096 bytes', async () => {
  const answer = await send('Invoke', { FunctionName: 'echo', Payload: '{"lines":1000}', LogType: 'Tail' })
  const tail = Buffer.from(answer.LogResult, 'base64')
  assert.equal(tail.length, 4096)
  assert.match(tail.toString(), /000999 z{93}\nEND RequestId: \S+\nREPORT RequestId: .*\n$/)
})

test('ClientContext reaches the function', async () => {
  const context = { client: { app_title: 'shop' }, custom: { key: 'välue' }, env: { locale: 'de' } }
  const ClientContext = Buffer.from(JSON.stringify(context)).toString('base64')
  const { payload } = await invoke(lambda, 'echo', { context: true }, { ClientContext })
  assert.deepEqual([payload.title, payload.custom, payload.env], ['shop', { key: 'välue' }, { locale: 'de' }])
  assert.equal((await invoke(lambda, 'echo', { context: true })).payload.custom, null)
  const text = 'Client context must be a valid Base64-encoded JSON object.'
  for (const bad of ['not base64!', Buffer.from('{').toString('base64'), Buffer.alloc(3000, 'a').toString('base64')]) {
    await assert.rejects(invoke(lambda, 'echo', {}, { ClientContext: bad }),
      { name: 'InvalidRequestContentException', message: text })
  }
})

test('an error of the function is a 200 with its shape', async () => {
  const answer = await invoke(lambda, 'echo', { raise: 'bad value' })
  assert.equal(answer.status, 200)
  assert.equal(answer.functionError, 'Unhandled')
  assert.equal(answer.payload.errorType, 'ValueError')
  assert.equal(answer.payload.errorMessage, 'bad value')
  assert.match(answer.payload.requestId, /^[0-9a-f-]{36}$/)
  assert.match(answer.payload.stackTrace[0], /File "\/var\/task\/index.py", line 11, in handler/)
  assert.deepEqual((await invoke(lambda, 'echo', { next: 1 })).payload, { next: 1 })
})

test('every kind of JSON value passes unchanged', async () => {
  for (const value of [null, true, false, 0, -1.5, 1e100, '', 'x', [], {}, [[[]]], 'ä€😀\u0000\u2028', { 'ключ': ['値'] },
    '{"nested":"json"}', '\u0001\u0002binary\u00ff', ' leading', 'a'.repeat(100_000)]) {
    assert.deepEqual((await invoke(lambda, 'echo', value)).payload, value)
  }
})

test('a request without payload is an empty object', async () => {
  assert.equal(await (await post(undefined)).text(), '{}')
  assert.equal(await (await post('')).text(), '{}')
  assert.deepEqual(await send('Invoke', { FunctionName: 'echo' }).then((a) => Buffer.from(a.Payload).toString()), '{}')
})

const BAD_PAYLOADS = {
  '{': `Unexpected end-of-input: expected close marker for Object (start marker at ${LOCATION} 1, column: 1])`,
  'abc': "Unrecognized token 'abc': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')",
  "{'a':1}": `Unexpected character (''' (code 39)): was expecting double-quote to start field name`,
  '{"a":1,}': `Unexpected character ('}' (code 125)): was expecting double-quote to start field name`,
  '[1 2]': `Unexpected character ('2' (code 50)): was expecting comma to separate Array entries`,
  '01': 'Invalid numeric value: Leading zeroes not allowed',
  '"\n"': 'Illegal unquoted character ((CTRL-CHAR, code 10)): has to be escaped using backslash to be included in string value',
}
for (const [body, text] of Object.entries(BAD_PAYLOADS)) {
  test(`the payload ${JSON.stringify(body)} is refused as the service's parser does`, async () => {
    const answer = await post(body)
    assert.equal(answer.status, 400)
    assert.equal(answer.headers.get('x-amzn-errortype'), 'InvalidRequestContentException')
    const error = await answer.json()
    assert.equal(error.Type, 'User')
    assert.equal(error.message.slice(0, INVALID.length + text.length), INVALID + text)
    const [line, column, ...rest] = error.message.slice(INVALID.length + text.length + `\n at ${LOCATION} `.length).match(/\d+/g)
    assert.deepEqual([line, rest.length], ['1', 0])
    assert.ok(column >= 1 && column <= body.length + 1)
  })
}

test('a payload of nothing but white space, or not in UTF-8, is refused', async () => {
  for (const body of [' ', '\r\n\t ', Buffer.from([0x22, 0xff, 0x22]), Buffer.from([0xc0, 0x80]), '\ufeff{}']) {
    const answer = await post(body)
    assert.equal(answer.status, 400, JSON.stringify(body))
    const { message } = await answer.json()
    assert.ok(message.startsWith(INVALID) && message.length > INVALID.length + 10, message)
  }
})

test('values that the service does not know are refused by name', async () => {
  for (const [header, value, text] of [
    ['X-Amz-Invocation-Type', 'Later', "Value 'Later' at 'invocationType' failed to satisfy constraint: Member must satisfy enum value set: [Event, RequestResponse, DryRun]"],
    ['X-Amz-Log-Type', 'Head', "Value 'Head' at 'logType' failed to satisfy constraint: Member must satisfy enum value set: [None, Tail]"],
  ]) {
    const answer = await post('{}', { [header]: value })
    assert.equal(answer.status, 400)
    assert.equal(answer.headers.get('x-amzn-errortype'), 'ValidationException')
    assert.equal((await answer.json()).message, `1 validation error detected: ${text}`)
  }
})

test('a payload of 6,291,456 bytes passes, one more does not', async () => {
  await createFunction(lambda, { FunctionName: 'size', MemorySize: 512, Code: { ZipFile: pythonZip('def handler(event, context):\n    return len(event)\n') } })
  assert.equal(await (await post(`"${'a'.repeat(6_291_454)}"`, {}, 'size')).text(), '6291454')
  const answer = await post(`"${'a'.repeat(6_291_455)}"`, {}, 'size')
  assert.equal(answer.status, 413)
  assert.equal(answer.headers.get('x-amzn-errortype'), 'RequestEntityTooLargeException')
  assert.equal((await answer.json()).Message, 'Request must be smaller than 6291456 bytes for the InvokeFunction operation')
})

test('an answer of 6,291,556 bytes passes, one more does not', async () => {
  const source = 'def handler(event, context):\n    return "a" * event\n'
  await createFunction(lambda, { FunctionName: 'large', MemorySize: 512, Timeout: 20, Code: { ZipFile: pythonZip(source) } })
  const fits = await invoke(lambda, 'large', 6_291_554)
  assert.equal(fits.functionError, undefined)
  assert.equal(fits.text.length, 6_291_556)
  const refused = await invoke(lambda, 'large', 6_291_555)
  assert.equal(refused.functionError, 'Unhandled')
  assert.equal(refused.payload.errorType, 'Function.ResponseSizeTooLarge')
  assert.equal(refused.payload.errorMessage, 'Response payload size exceeded maximum allowed payload size (6291556 bytes).')
  assert.equal((await invoke(lambda, 'large', 3)).payload, 'aaa')
})

// --- changes while invokes run ---

const slow = (value) => pythonZip(`import time
def handler(event, context):
    time.sleep(event.get("sleep", 0))
    return ${value}
`)

async function started(promise) {
  await waitUntil(async () => (await concurrency()) > 0, { what: 'the invoke under way' })
  await sleep(300) // it is admitted; its environment may still be starting, which counts as running too
  return promise
}

test('an invoke under way ends on the code it began with, the next gets the new', async () => {
  await createFunction(lambda, { FunctionName: 'moved', Timeout: 30, Code: { ZipFile: slow(1) } })
  await invoke(lambda, 'moved')
  const running = invoke(lambda, 'moved', { sleep: 3 })
  await started()
  await send('UpdateFunctionCode', { FunctionName: 'moved', ZipFile: slow(2) })
  await sdk.waitUntilFunctionUpdatedV2({ client: lambda, minDelay: 1, maxWaitTime: 20 }, { FunctionName: 'moved' })
  assert.equal((await invoke(lambda, 'moved')).payload, 2)
  assert.equal((await running).payload, 1)
  assert.equal((await invoke(lambda, 'moved')).payload, 2)
})

test('an invoke under way ends with 200 when its function is deleted', async () => {
  await createFunction(lambda, { FunctionName: 'doomed', Timeout: 30, Code: { ZipFile: slow(1) } })
  await invoke(lambda, 'doomed')
  const running = invoke(lambda, 'doomed', { sleep: 2 })
  await started()
  await send('DeleteFunction', { FunctionName: 'doomed' })
  await assert.rejects(invoke(lambda, 'doomed'), { name: 'ResourceNotFoundException' })
  const answer = await running
  assert.equal(answer.status, 200)
  assert.equal(answer.payload, 1)
  assert.equal(answer.functionError, undefined)
  await waitUntil(async () => (await concurrency()) === 0, { what: 'the unit being back' })
})

test('twenty times deleted and made again, it is always the new code that runs', async () => {
  for (let round = 0; round < 20; round++) {
    await send('CreateFunction', { FunctionName: 'reborn', Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile: slow(round) } })
    await waitUntil(async () => (await send('GetFunctionConfiguration', { FunctionName: 'reborn' })).State === 'Active')
    assert.equal((await invoke(lambda, 'reborn')).payload, round)
    await send('DeleteFunction', { FunctionName: 'reborn' })
  }
})

test('an invoke of a function that is still Pending is a conflict, or runs', async () => {
  const text = 'The operation cannot be performed at this time. The function is currently in the following state: Pending'
  for (let round = 0; round < 5; round++) {
    await send('CreateFunction', { FunctionName: `new-${round}`, Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile: slow(round) } })
    const outcome = await invoke(lambda, `new-${round}`).then(({ payload }) => payload, (error) => error)
    if (outcome !== round) {
      assert.equal(outcome.$metadata?.httpStatusCode, 409, String(outcome))
      assert.equal(outcome.name, 'ResourceConflictException')
      assert.equal(outcome.message, text)
    }
  }
})
