// InvokeWithResponseStream with the SDK: pieces as they come, errors on the way, slow and vanishing callers.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { InvokeWithResponseStreamCommand } from '@aws-sdk/client-lambda'
import { createFunction, invoke, nodeZip, startKiln, waitUntil, zip } from '../lib/kiln.mjs'

const LIMIT = 16 * 1024 * 1024
let kiln
before(async () => (kiln = await startKiln({ args: ['--response-stream', String(LIMIT)] })))
after(() => kiln.stop())

let names = 0
async function streaming(body, parameters = {}) {
  const source = `export const handler = awslambda.streamifyResponse(async (event, stream) => { ${body} })\n`
  return create({ Runtime: 'nodejs20.x', Code: { ZipFile: nodeZip(source) }, ...parameters })
}

async function create(parameters) {
  const FunctionName = `f${names++}`
  await createFunction(kiln.lambda, { FunctionName, Timeout: 10, ...parameters })
  return FunctionName
}

/** A runtime of Python's standard library on the raw Runtime API; `answer` is what it does with an event. */
const BOOTSTRAP = (answer) => `#!/usr/bin/python3
import os, socket, sys, time
host, port = os.environ["AWS_LAMBDA_RUNTIME_API"].split(":")
def read_head(file):
    head = {}
    while (line := file.readline().decode().strip()):
        name, _, value = line.partition(":")
        head[name.lower()] = value.strip()
    return head
connection = socket.create_connection((host, int(port)))
file = connection.makefile("rb")
def send(text): connection.sendall(text if isinstance(text, bytes) else text.encode())
def begin(mode="streaming"):
    send("POST /2018-06-01/runtime/invocation/%s/response HTTP/1.1\\r\\nHost: x\\r\\nLambda-Runtime-Function-Response-Mode: %s\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n" % (id, mode))
def piece(data): send("%x\\r\\n%s\\r\\n" % (len(data), data))
def end(trailers=""):
    send("0\\r\\n%s\\r\\n" % trailers)
    head = read_head(file)
    file.read(int(head.get("content-length", 0)))
while True:
    send("GET /2018-06-01/runtime/invocation/next HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    head = read_head(file)
    event = file.read(int(head["content-length"]))
    id = head["lambda-runtime-aws-request-id"]
${answer.replace(/^/gm, '    ')}
`
const raw = (answer, parameters = {}) =>
  create({
    Runtime: 'provided.al2023',
    Handler: 'x',
    Code: { ZipFile: zip({ bootstrap: BOOTSTRAP(answer) }) },
    ...parameters,
  })

const begin = (FunctionName, parameters = {}) =>
  kiln.lambda.send(new InvokeWithResponseStreamCommand({ FunctionName, ...parameters }))

/** The whole stream: text of the pieces, their number, and what InvokeComplete says. */
async function collect(answer) {
  const pieces = []
  let complete
  for await (const event of answer.EventStream) {
    assert.equal(complete, undefined, 'nothing follows InvokeComplete')
    if (event.PayloadChunk) pieces.push(Buffer.from(event.PayloadChunk.Payload))
    else complete = event.InvokeComplete
  }
  assert.ok(complete, 'the stream ends with InvokeComplete')
  return { text: Buffer.concat(pieces).toString(), pieces: pieces.length, complete }
}

const stream = async (name, parameters) => collect(await begin(name, parameters))
const healthy = async (name) => assert.equal((await stream(name, { Payload: '{"well":true}' })).complete.ErrorCode, undefined)

test('a piece is with the caller while the function is at work', async () => {
  const name = await raw('begin()\npiece("first")\ntime.sleep(60)', { Timeout: 5 })
  for await (const { PayloadChunk } of (await begin(name, { Payload: '{}' })).EventStream) {
    assert.equal(Buffer.from(PayloadChunk.Payload).toString(), 'first')
    assert.equal((await health()).concurrency, 1)
    break
  }
  await waitUntil(idle, { what: 'the invoke to time out', timeoutMs: 30_000 })
})

test('the pieces are those of the function', async () => {
  const name = await raw('begin()\npiece("first")\ntime.sleep(0.1)\npiece("second")\nend()')
  const answer = await begin(name, { Payload: '{}' })
  assert.equal(answer.StatusCode, 200)
  assert.equal(answer.ExecutedVersion, '$LATEST')
  assert.equal(answer.ResponseStreamContentType, 'application/vnd.amazon.eventstream')
  const { text, pieces, complete } = await collect(answer)
  assert.equal(text, 'firstsecond')
  assert.equal(pieces, 2)
  assert.deepEqual([complete.ErrorCode, complete.ErrorDetails, complete.LogResult], [undefined, undefined, undefined])
})

test('a function in Node.js streams with awslambda.streamifyResponse', async () => {
  const name = await streaming('for (let i = 0; i < 5; i++) stream.write(`${i}.`); stream.end(event.last)')
  const { text } = await stream(name, { Payload: '{"last":"é"}' })
  assert.equal(text, '0.1.2.3.4.é')
})

test('an answer that is posted whole comes as a stream too', async () => {
  const name = await create({ Runtime: 'nodejs20.x', Code: { ZipFile: nodeZip('export const handler = async (e) => ({ e, big: "x".repeat(200000) })\n') } })
  const { text, pieces } = await stream(name, { Payload: '{"a":1}' })
  assert.deepEqual(JSON.parse(text), { e: { a: 1 }, big: 'x'.repeat(200000) })
  assert.ok(pieces > 1)
})

test('Invoke of a function that streams gets all of it at once', async () => {
  const name = await streaming('stream.write("{\\"a\\":"); stream.end("1}")')
  assert.deepEqual((await invoke(kiln.lambda, name, {})).payload, { a: 1 })
})

test('the log\'s tail is in InvokeComplete', async () => {
  const name = await streaming('console.log("said so"); stream.end("x")')
  const { text, complete } = await stream(name, { LogType: 'Tail' })
  const log = Buffer.from(complete.LogResult, 'base64').toString()
  assert.equal(text, 'x')
  for (const word of ['START RequestId', 'said so', 'REPORT RequestId']) assert.ok(log.includes(word), log)
})

test('an error of the handler before the first piece', async () => {
  const name = await streaming('if (!event.well) throw new RangeError("early"); stream.end()')
  const { text, complete } = await stream(name)
  assert.equal(text, '')
  assert.equal(complete.ErrorCode, 'Unhandled')
  assert.equal(JSON.parse(complete.ErrorDetails).errorType, 'RangeError')
  await healthy(name)
})

test('an error after it comes behind the pieces', async () => {
  const name = await streaming('stream.write("some"); if (!event.well) throw new RangeError("late"); stream.end()')
  const { text, complete } = await stream(name)
  assert.equal(text, 'some')
  assert.equal(complete.ErrorCode, 'RangeError')
  assert.equal(JSON.parse(complete.ErrorDetails).errorMessage, 'late')
  await healthy(name)
})

test('trailers without a body name the error', async () => {
  const name = await raw('begin()\npiece("some")\nend("Lambda-Runtime-Function-Error-Type: Function.Oh\\r\\n")')
  const { complete } = await stream(name)
  assert.equal(complete.ErrorCode, 'Function.Oh')
  assert.equal(complete.ErrorDetails, undefined)
})

test('a timeout in the middle', async () => {
  const name = await raw('begin()\npiece("some")\nif b"well" not in event: time.sleep(60)\nend()', { Timeout: 1 })
  const { text, complete } = await stream(name)
  assert.equal(text, 'some')
  assert.equal(complete.ErrorCode, 'Unhandled')
  assert.match(JSON.parse(complete.ErrorDetails).errorMessage, /Task timed out after 1\.00 seconds$/)
  await healthy(name)
})

test('the death of the runtime in the middle', async () => {
  const name = await raw('begin()\npiece("some")\nif b"well" not in event: os._exit(7)\nend()')
  const { text, complete } = await stream(name)
  assert.equal(text, 'some')
  assert.match(JSON.parse(complete.ErrorDetails).errorMessage, /Runtime exited with error: exit status 7$/)
  await healthy(name)
})

test('a connection that breaks off in the middle', async () => {
  const name = await raw('begin()\npiece("some")\nconnection.shutdown(2)\ntime.sleep(60)')
  const { text, complete } = await stream(name)
  assert.equal(text, 'some')
  assert.equal(JSON.parse(complete.ErrorDetails).errorType, 'Runtime.TruncatedResponse')
})

test('no more than the limit is streamed', async () => {
  const name = await raw(`begin()
for i in range(${LIMIT / 65536} + (b"well" not in event)):
    piece("x" * 65536)
end()
`)
  const { text, complete } = await stream(name)
  assert.equal(text.length, LIMIT)
  assert.equal(JSON.parse(complete.ErrorDetails).errorType, 'Function.ResponseSizeTooLarge')
  assert.equal((await stream(name, { Payload: '{"well":1}' })).text.length, LIMIT)
})

test('another mode than streaming is refused', async () => {
  const name = await raw('begin("lumpy")\nend()')
  const { complete } = await stream(name)
  assert.equal(JSON.parse(complete.ErrorDetails).errorType, 'Runtime.InvalidResponseModeHeader')
})

/** Sends the invoke on a socket of its own, which reads nothing. */
function deafCaller(name) {
  const socket = connect(new URL(kiln.endpoint).port, '127.0.0.1')
  socket.pause()
  socket.write(`POST /2021-11-15/functions/${name}/response-streaming-invocations HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`)
  return socket
}

const residentKiB = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${kiln.pid}/status`, 'utf8'))[1])
const health = async () => (await kiln.fetch('/_kiln/health')).json()
const idle = async () => (await health()).concurrency === 0

test('a caller that reads slowly holds the function back, and the daemon does not grow', async () => {
  const functions = []
  for (let i = 0; i < 4; i++) functions.push(await raw(`begin()\nfor i in range(${LIMIT / 65536}):\n    piece("x" * 65536)\nend()\n`))
  const before = residentKiB()
  const callers = functions.map(deafCaller)
  await waitUntil(async () => (await health()).concurrency === callers.length, { what: 'the invokes to be under way' })
  await new Promise((resolve) => setTimeout(resolve, 500))
  assert.equal((await health()).concurrency, callers.length, 'nobody has finished')
  // What the kernel's buffers hold has passed through, and under a memory checker that shows; it is a quarter at most.
  const grown = residentKiB() - before
  assert.ok(grown < (callers.length * LIMIT) / 1024 / 2, `grew by ${grown} KiB`)
  for (const caller of callers) {
    let received = 0
    caller.on('data', (data) => (received += data.length)).resume()
    await waitUntil(() => received > LIMIT, { what: 'the whole stream' })
    caller.destroy()
  }
  await waitUntil(idle, { what: 'the invokes to end' })
})

test('a caller that goes away does not end the invoke', async () => {
  const name = await raw(`begin()
for i in range(${LIMIT / 65536}):
    piece("x" * 65536)
end()
print("came to the end", flush=True)
`)
  const caller = deafCaller(name)
  await waitUntil(async () => (await health()).concurrency === 1, { what: 'the invoke to be under way' })
  caller.destroy()
  await waitUntil(idle, { what: 'the invoke to end' })
  const { complete } = await stream(name, { LogType: 'Tail' })
  assert.ok(complete.LogResult)
})

test('DryRun runs nothing, Event is not known here', async () => {
  const name = await streaming('stream.end()')
  assert.equal((await begin(name, { InvocationType: 'DryRun' })).StatusCode, 204)
  await assert.rejects(begin(name, { InvocationType: 'Event' }), (error) => {
    assert.equal(error.name, 'ValidationException')
    assert.match(error.message, /Member must satisfy enum value set: \[RequestResponse, DryRun\]/)
    return true
  })
})

test('what is refused is refused before a stream begins', async () => {
  await assert.rejects(begin('nobody'), { name: 'ResourceNotFoundException' })
  const name = await streaming('stream.end()')
  await assert.rejects(begin(name, { Payload: '{' }), { name: 'InvalidRequestContentException' })
})
