// What no SDK sends: broken requests, bodies and clients. Every answer has the service's form, nothing changes, and the
// daemon goes on.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import { rememberState } from '../lib/intact.mjs'
import { createFunction, invoke, pythonZip, sleep, startKiln, waitUntil } from '../lib/kiln.mjs'
import { exchangeRaw, openRaw } from '../lib/raw_http.mjs'

const FUNCTIONS = '/2015-03-31/functions'
const INVOKE = `POST ${FUNCTIONS}/raw/invocations HTTP/1.1\r\nHost: x\r\n`
const CREATE = `POST ${FUNCTIONS} HTTP/1.1\r\nHost: x\r\n`
let kiln
let assertUnchanged

before(async () => {
  kiln = await startKiln()
  const source = 'def handler(event, context):\n    return event\n'
  await createFunction(kiln.lambda, { FunctionName: 'raw', Code: { ZipFile: pythonZip(source) } })
})

after(() => kiln?.stop())
beforeEach(async () => {
  assertUnchanged = await rememberState(kiln)
})
afterEach(async () => {
  await assertUnchanged()
  assert.deepEqual((await invoke(kiln.lambda, 'raw', { still: 'here' })).payload, { still: 'here' })
})

function withBody(head, body, extra = '') {
  return Buffer.concat([Buffer.from(`${head}${extra}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`), Buffer.from(body)])
}

function assertForm(answer, status, code) {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers['x-amzn-errortype'], code)
  assert.equal(answer.headers['content-type'], 'application/json')
  assert.match(answer.headers['x-amzn-requestid'], /^[0-9a-f-]{36}$/)
  return answer.json()
}

const WRONG_BODIES = {
  'no JSON': ['{', 'SerializationException'],
  'half a JSON document': ['{"FunctionName": "made", ', 'SerializationException'],
  'two JSON documents': ['{}{}', 'SerializationException'],
  'an array': ['[]', 'SerializationException'],
  'a string': ['"x"', 'SerializationException'],
  'bad UTF-8': [Buffer.from([...Buffer.from('{"FunctionName":"'), 0xff, 0xfe, ...Buffer.from('"}')]), 'SerializationException'],
  'a NUL': [Buffer.from('{"FunctionName":"a\0b"}'), 'SerializationException'],
  'a number for a string': ['{"FunctionName":1}', 'SerializationException'],
  'a string for a number': ['{"FunctionName":"made","MemorySize":"128"}', 'SerializationException'],
  'an object for a list': ['{"FunctionName":"made","Layers":{}}', 'SerializationException'],
  'a list for an object': ['{"FunctionName":"made","Environment":[]}', 'SerializationException'],
  'a string for a boolean': ['{"FunctionName":"made","Publish":"yes"}', 'SerializationException'],
  'a number for a variable': ['{"FunctionName":"made","Environment":{"Variables":{"AB":1}}}', 'SerializationException'],
  'a huge number': ['{"FunctionName":"made","MemorySize":99999999999999999999}', 'SerializationException'],
  'no base64': ['{"FunctionName":"made","Role":"arn:aws:iam::000000000000:role/r","Runtime":"python3.12","Handler":"h","Code":{"ZipFile":"%%%"}}', 'SerializationException'],
  'nesting without end': ['['.repeat(100_000), 'SerializationException'],
  'nothing': ['', 'ValidationException'],
  'an empty object': ['{}', 'ValidationException'],
  'only nulls': ['{"FunctionName":null,"Role":null,"Code":null}', 'ValidationException'],
}
for (const [what, [body, code]] of Object.entries(WRONG_BODIES)) {
  test(`a body of ${what} is refused`, async () => {
    const error = assertForm(await exchangeRaw(kiln.port, withBody(CREATE, body)), 400, code)
    assert.ok((error.message ?? error.Message).length > 10, JSON.stringify(error))
  })
}

test('missing members are named all at once', async () => {
  const { message } = assertForm(await exchangeRaw(kiln.port, withBody(CREATE, '{}')), 400, 'ValidationException')
  for (const member of ['code', 'functionName', 'role'])
    assert.ok(message.includes(`Value null at '${member}' failed to satisfy constraint: Member must not be null`), message)
  assert.match(message, /^3 validation errors detected: /)
})

test('the content type of a body does not matter, as on the service', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'nonsense', '']) {
    const answer = await exchangeRaw(kiln.port, withBody(INVOKE, '{"a":1}', `Content-Type: ${type}\r\n`))
    assert.equal(answer.status, 200, type)
    assert.equal(answer.text, '{"a": 1}')
  }
})

test('unknown paths and methods are answered in the form of the service', async () => {
  for (const [method, path] of [
    ['GET', '/'], ['GET', '/nothing/here'], ['POST', '/2015-03-31'], ['PATCH', FUNCTIONS], ['DELETE', FUNCTIONS],
    ['PUT', `${FUNCTIONS}/raw/invocations`], ['GET', `${FUNCTIONS}/raw/invocations/more`], ['GET', '/2015-03-31/functions/%zz'],
    ['GET', '//2015-03-31//functions'], ['POST', '/_kiln/health'], ['OPTIONS', '*'],
  ]) {
    const answer = await exchangeRaw(kiln.port, `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    assertForm(answer, 404, 'UnknownOperationException')
  }
})

test('answers say their type and carry a request id', async () => {
  for (const [method, path, status] of [
    ['GET', FUNCTIONS, 200], ['GET', `${FUNCTIONS}/raw`, 200], ['GET', '/2016-08-19/account-settings', 200],
    ['DELETE', '/2017-10-31/functions/raw/concurrency', 204], ['GET', '/_kiln/health', 200],
  ]) {
    const answer = await exchangeRaw(kiln.port, `${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.equal(answer.status, status, path)
    assert.match(answer.headers['x-amzn-requestid'], /^[0-9a-f-]{36}$/)
    assert.equal(answer.headers['content-type'], status === 204 ? undefined : 'application/json')
  }
})

test('operations that are not there yet say so by name', async () => {
  const answer = await exchangeRaw(kiln.port, 'GET /2025-11-30/capacity-providers HTTP/1.1\r\nHost: x\r\n\r\n')
  const error = assertForm(answer, 501, 'NotImplementedException')
  assert.match(error.message, /ListCapacityProviders/)
  const event = await exchangeRaw(kiln.port, withBody(INVOKE, '{}', 'X-Amz-Invocation-Type: Event\r\n'))
  assertForm(event, 501, 'NotImplementedException')
})

const BROKEN_REQUESTS = {
  'no HTTP': ['hello\r\n\r\n', 400, 'BadRequestException'],
  'a method in lower case': ['get / HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'BadRequestException'],
  'no host': ['GET / HTTP/1.1\r\n\r\n', 400, 'BadRequestException'],
  'two lengths': [`${INVOKE}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400, 'BadRequestException'],
  'a length and chunks': [`${INVOKE}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`, 400, 'BadRequestException'],
  'a negative length': [`${INVOKE}Content-Length: -1\r\n\r\n`, 400, 'BadRequestException'],
  'a chunk without size': [`${INVOKE}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, 400, 'BadRequestException'],
  'an unknown coding': [`${INVOKE}Transfer-Encoding: gzip\r\n\r\n`, 501, 'NotImplementedException'],
  'an unknown expectation': [`${INVOKE}Expect: wonders\r\nContent-Length: 2\r\n\r\n`, 417, 'ExpectationFailedException'],
  'HTTP/2': ['GET / HTTP/2.0\r\nHost: x\r\n\r\n', 505, 'HttpVersionNotSupportedException'],
  'too many headers': [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(1_100_000)}\r\n\r\n`, 431, 'RequestHeaderFieldsTooLargeException'],
}
for (const [what, [request, status, code]] of Object.entries(BROKEN_REQUESTS)) {
  test(`a request with ${what} gets ${status} in the form of the service`, async () => {
    const error = assertForm(await exchangeRaw(kiln.port, request), status, code)
    assert.equal(error.Type, status < 500 ? 'User' : 'Server')
  })
}

function chunk(bytes) {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

test('a chunked body is read as any other', async () => {
  const parts = ['{"te', 'xt":"', 'x'.repeat(100_000), '"}'].map((text) => chunk(Buffer.from(text)))
  const answer = await exchangeRaw(kiln.port, `${INVOKE}Transfer-Encoding: chunked\r\n\r\n`, ...parts, '0\r\n\r\n')
  assert.equal(answer.status, 200)
  assert.equal(answer.json().text.length, 100_000)
})

test('a chunked body over the limit is refused as soon as it shows, with the name of the operation', async () => {
  const text = 'Request must be smaller than 6291456 bytes for the InvokeFunction operation'
  const { socket, response } = await openRaw(kiln.port)
  socket.write(`${INVOKE}Transfer-Encoding: chunked\r\n\r\n`)
  const piece = chunk(Buffer.alloc(1 << 20, 0x61))
  for (let i = 0; i < 7; i++) socket.write(piece)
  assert.deepEqual(assertForm(await response(), 413, 'RequestEntityTooLargeException'), { Message: text })
  socket.destroy()
  const announced = await exchangeRaw(kiln.port, `${INVOKE}Content-Length: 6291457\r\n\r\n`)
  assert.deepEqual(assertForm(announced, 413, 'RequestEntityTooLargeException'), { Message: text })
  const expecting = await exchangeRaw(kiln.port, `${INVOKE}Expect: 100-continue\r\nContent-Length: 6291457\r\n\r\n`)
  assertForm(expecting, 413, 'RequestEntityTooLargeException')
})

test('clients that vanish while they upload leave nothing', async () => {
  const body = Buffer.alloc(4 << 20, 0x61)
  const sockets = []
  for (let i = 0; i < 20; i++) {
    const { socket } = await openRaw(kiln.port)
    socket.write(i % 2 ? `${CREATE}Content-Length: 50000000\r\n\r\n` : `${CREATE}Transfer-Encoding: chunked\r\n\r\n1000000\r\n`)
    socket.write(body.subarray(0, i * 200_000))
    sockets.push(socket)
  }
  await sleep(100)
  sockets.forEach((socket, i) => (i % 3 ? socket.destroy() : socket.resetAndDestroy()))
})

test('a client that vanishes after its request still has it carried out', async () => {
  const zip = pythonZip('def handler(event, context):\n    return 1\n').toString('base64')
  const body = JSON.stringify({
    FunctionName: 'orphan', Role: 'arn:aws:iam::000000000000:role/r', Runtime: 'python3.12', Handler: 'index.handler', Code: { ZipFile: zip },
  })
  const { socket } = await openRaw(kiln.port)
  socket.write(withBody(CREATE, body), () => socket.destroy())
  await waitUntil(async () => (await kiln.fetch(`${FUNCTIONS}/orphan`)).status === 200, { what: 'the function of the one who has gone' })
  assert.equal((await kiln.fetch(`${FUNCTIONS}/orphan`, { method: 'DELETE' })).status, 204)
})

test('requests that follow each other on one connection are answered in order', async () => {
  const { socket, response } = await openRaw(kiln.port)
  socket.write(Buffer.concat(Array.from({ length: 20 }, (_, i) => withBody(INVOKE, String(i)))))
  for (let i = 0; i < 20; i++) assert.equal((await response()).text, String(i))
  socket.destroy()
})

test('a slow client is served byte by byte, while others are served at once', async () => {
  const { socket, response } = await openRaw(kiln.port)
  const request = withBody(INVOKE, '"slow"')
  for (const byte of request) {
    socket.write(Buffer.from([byte]))
    await sleep(2)
  }
  assert.equal((await invoke(kiln.lambda, 'raw', 'quick')).payload, 'quick')
  assert.equal((await response()).text, '"slow"')
  socket.destroy()
})
