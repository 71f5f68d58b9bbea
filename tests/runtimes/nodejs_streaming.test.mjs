import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRuntime } from '../lib/runtime_api.mjs'

const node = (t, body, prelude = '') =>
  startRuntime(t, 'nodejs', {
    'index.mjs': `${prelude}\nexport const handler = awslambda.streamifyResponse(async (event, stream, context) => { ${body} })\n`,
  })

test('what the handler writes is posted in pieces', async (t) => {
  const runtime = await node(t, 'stream.write("one "); stream.write(Buffer.from("two ")); stream.end(event.last)')
  for (const last of ['three', 'four']) {
    const { kind, text, headers } = await runtime.invoke({ last })
    assert.equal(kind, 'response')
    assert.equal(text, `one two ${last}`)
    assert.equal(headers['lambda-runtime-function-response-mode'], 'streaming')
    assert.equal(headers['transfer-encoding'], 'chunked')
    assert.equal(headers['content-type'], 'application/octet-stream')
  }
  assert.equal(runtime.connections, 1)
})

test('status and headers of an HTTP answer come first, with eight NULs behind them', async (t) => {
  const runtime = await node(
    t,
    `const http = awslambda.HttpResponseStream.from(stream, { statusCode: 201, headers: { 'X-A': 'b' } })
     http.write('body'); http.end()`,
  )
  const { text, headers } = await runtime.invoke()
  assert.equal(headers['content-type'], 'application/vnd.awslambda.http-integration-response')
  assert.equal(text, '{"statusCode":201,"headers":{"X-A":"b"}}' + '\0'.repeat(8) + 'body')
})

test('the content type is the handler\'s', async (t) => {
  const runtime = await node(t, 'stream.setContentType("text/plain"); stream.end("x")')
  assert.equal((await runtime.invoke()).headers['content-type'], 'text/plain')
})

test('a pipeline of many pieces passes whole', async (t) => {
  const runtime = await node(
    t,
    'await pipeline(Readable.from((function* () { for (let i = 0; i < 500; i++) yield "x".repeat(10000) })()), stream)',
    'import { Readable } from "node:stream"\nimport { pipeline } from "node:stream/promises"',
  )
  assert.equal((await runtime.invoke()).body.length, 5_000_000)
})

test('an error before the first byte is an error like any other', async (t) => {
  const runtime = await node(t, 'throw new RangeError("early")')
  const { kind, payload } = await runtime.invoke()
  assert.equal(kind, 'error')
  assert.equal(payload.errorType, 'RangeError')
  assert.equal(payload.errorMessage, 'early')
})

test('an error after it goes into the trailers, and the next invocation works', async (t) => {
  const runtime = await node(t, 'stream.write("some"); if (event.bad) throw new RangeError("late"); stream.end()')
  const { kind, text, trailers } = await runtime.invoke({ bad: true })
  assert.equal(kind, 'response')
  assert.equal(text, 'some')
  assert.equal(trailers['lambda-runtime-function-error-type'], 'RangeError')
  const error = JSON.parse(Buffer.from(trailers['lambda-runtime-function-error-body'], 'base64').toString())
  assert.deepEqual([error.errorType, error.errorMessage], ['RangeError', 'late'])
  assert.equal((await runtime.invoke()).trailers['lambda-runtime-function-error-type'], undefined)
})

test('a stream that is never ended is an error once nothing can happen any more', async (t) => {
  const runtime = await node(t, 'stream.write("some")')
  const { trailers } = await runtime.invoke()
  assert.equal(trailers['lambda-runtime-function-error-type'], 'Runtime.NodeJsExit')
})
