// How Python's runtime uses its connection, against a Runtime API at the level of bytes.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRuntime } from '../lib/runtime_api.mjs'

const TOGETHER = 65536 // the largest result that the next request goes out with
const PATIENCE = { timeout: 20_000 } // before a test gives up
const NEXT = /GET \/2018-06-01\/runtime\/invocation\/next HTTP\/1\.1\r\nHost: [^\r]+\r\n\r\n$/
const ACCEPTED = answer('202 Accepted', '{"status":"OK"}\n')

function answer(status, body, ...headers) {
  const bytes = Buffer.from(body)
  return Buffer.concat([Buffer.from([`HTTP/1.1 ${status}`, ...headers, `Content-Length: ${bytes.length}`, '', ''].join('\r\n')), bytes])
}

const event = (value, id = randomUUID()) => answer('200 OK', JSON.stringify(value), `Lambda-Runtime-Aws-Request-Id: ${id}`)

/** What the runtime sends on one connection. */
class Connection {
  pieces = []
  #wake = () => {}

  constructor(socket) {
    this.socket = socket.setNoDelay(true)
    socket.on('error', () => {}) // reset by the runtime's end
    socket.on('data', (bytes) => {
      this.pieces.push(bytes.toString('latin1'))
      this.#wake()
    })
  }

  /** The pieces since the last call, as soon as `expected` matches them. */
  async take(expected) {
    while (!expected.test(this.pieces.join(''))) await new Promise((resolve) => (this.#wake = resolve))
    return this.pieces.splice(0)
  }

  write(...parts) {
    this.socket.write(Buffer.concat(parts))
  }

  /** Writes in parts, which the runtime most likely reads one by one. */
  async writeCut(bytes, ...positions) {
    let from = 0
    for (const to of [...positions, bytes.length]) {
      this.socket.write(bytes.subarray(from, to))
      from = to
      await sleep(1)
    }
  }
}

/** { runtime, connection, accept }: the runtime's first connection, and what resolves with the next one. */
async function start(t, source = 'def handler(event, context):\n    return event\n') {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = []
  const sockets = []
  let wake = () => {}
  server.on('connection', (socket) => {
    sockets.push(socket)
    accepted.push(new Connection(socket))
    wake()
  })
  const accept = async () => {
    while (!accepted.length) await new Promise((resolve) => (wake = resolve))
    return accepted.shift()
  }
  const env = { AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${server.address().port}` }
  const runtime = await startRuntime(t, 'python', { 'index.py': source }, { env })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { runtime, connection: await accept(), accept }
}

async function startWithEvent(t, value = 1, source = undefined) {
  const started = await start(t, source)
  const id = randomUUID()
  await started.connection.take(NEXT)
  started.connection.write(event(value, id))
  return { ...started, id }
}

test('a result and the request for the next event are one piece', PATIENCE, async (t) => {
  const { connection, id } = await startWithEvent(t, { a: 1 })
  const pieces = await connection.take(NEXT)
  assert.equal(pieces.length, 1)
  assert.match(pieces[0], new RegExp(`^POST /2018-06-01/runtime/invocation/${id}/response HTTP/1\\.1\r\n`))
  assert.match(pieces[0], /\r\nContent-Length: 8\r\n\r\n\{"a": 1\}GET /)
})

test('so are an error and the request for the next event, and the error has its type', PATIENCE, async (t) => {
  const { connection, id } = await startWithEvent(t, 1, 'def handler(event, context):\n    raise KeyError("k")\n')
  const pieces = await connection.take(NEXT)
  assert.equal(pieces.length, 1)
  assert.match(pieces[0], new RegExp(`^POST /2018-06-01/runtime/invocation/${id}/error HTTP/1\\.1\r\n`))
  assert.match(pieces[0], /\r\nLambda-Runtime-Function-Error-Type: KeyError\r\n/)
})

test('an error of Init is not followed by a request for an event', PATIENCE, async (t) => {
  const { runtime, connection } = await start(t, 'raise KeyError("k")\n')
  const pieces = await connection.take(/init\/error HTTP[^]*\r\n\r\n\{.*\}$/)
  connection.write(ACCEPTED)
  assert.equal((await runtime.exited).code, 1)
  assert.doesNotMatch([...pieces, ...connection.pieces].join(''), /GET /)
})

test('two answers are understood wherever they are cut', PATIENCE, async (t) => {
  const { connection } = await startWithEvent(t, 0)
  const both = Buffer.concat([ACCEPTED, event('grüß', 'the-id')])
  for (let cut = 1; cut < both.length; cut++) {
    await connection.take(NEXT)
    await connection.writeCut(both, cut)
  }
  await connection.take(NEXT)
  await connection.writeCut(both, ...both.keys()) // byte for byte
  const [piece] = await connection.take(NEXT)
  assert.match(piece, /invocation\/the-id\/response/)
  assert.match(piece, /\r\n\r\n"gr\u00c3\u00bc\u00c3\u009f"GET /)
})

test('a long event that begins right behind the first answer is whole', PATIENCE, async (t) => {
  const { connection } = await startWithEvent(t, 0, 'def handler(event, context):\n    return [len(event), set(event) == {"x"}] if event else 0\n')
  await connection.take(NEXT)
  connection.write(ACCEPTED, event('x'.repeat(3_000_000)))
  assert.match((await connection.take(NEXT)).join(''), /\r\n\r\n\[3000000, true\]GET /)
})

test('answers in chunks, with trailers, end where they end', PATIENCE, async (t) => {
  const { connection } = await startWithEvent(t)
  const chunked = (status, body, ...headers) =>
    Buffer.from([`HTTP/1.1 ${status}`, ...headers, 'Transfer-Encoding: chunked', '', body, '0', 'A-Trailer: 1', '', ''].join('\r\n'))
  const both = Buffer.concat([
    chunked('202 Accepted', '2\r\nOK'),
    chunked('200 OK', '3;x=y\r\n[1,\r\n2\r\n2]', 'Lambda-Runtime-Aws-Request-Id: id'),
  ])
  for (const cut of [1, both.indexOf('0\r\nA'), both.indexOf('Trailer'), both.indexOf('HTTP', 9), both.indexOf('2]')]) {
    await connection.take(NEXT)
    await connection.writeCut(both, cut)
  }
  assert.match((await connection.take(NEXT)).join(''), /\r\n\r\n\[1, 2\]GET /)
})

const endings = {
  'ended': (connection) => connection.socket.end(ACCEPTED),
  'announced as ending': (connection) => connection.write(answer('202 Accepted', '', 'Connection: close')),
  'ended, once it has been waited on': async (connection) => {
    await connection.writeCut(ACCEPTED)
    connection.socket.end()
  },
}
for (const [name, end] of Object.entries(endings)) {
  test(`connection ${name} after the first answer: the event alone is asked for again`, PATIENCE, async (t) => {
    const { connection, accept } = await startWithEvent(t)
    await connection.take(NEXT)
    await end(connection)
    const second = await accept()
    assert.match((await second.take(NEXT)).join(''), /^GET /)
    second.write(event(2))
    const pieces = await second.take(NEXT)
    assert.equal(pieces.length, 1)
    assert.match(pieces[0], /^POST [^]*\r\n\r\n2GET /)
  })
}

test('connection ended before any answer: the result is sent again, once', PATIENCE, async (t) => {
  const { runtime, connection, accept, id } = await startWithEvent(t)
  await connection.take(NEXT)
  connection.socket.end()
  const second = await accept()
  const pieces = await second.take(NEXT)
  assert.equal(pieces.length, 1)
  assert.match(pieces[0], new RegExp(`^POST \\S+/${id}/response `))
  second.socket.end()
  assert.equal((await runtime.exited).code, 1)
  assert.match(runtime.log, /^bootstrap\.py: the Runtime API closed the connection$/m)
})

test('connection ended within the event: the process ends', PATIENCE, async (t) => {
  const { runtime, connection } = await startWithEvent(t)
  await connection.take(NEXT)
  connection.socket.end(Buffer.concat([ACCEPTED, event('text').subarray(0, -1)]))
  assert.equal((await runtime.exited).code, 1)
  assert.match(runtime.log, /^bootstrap\.py: the Runtime API closed the connection$/m)
})

test('a large result is answered before the next event is asked for', PATIENCE, async (t) => {
  const { connection, accept } = await startWithEvent(t, TOGETHER, 'def handler(event, context):\n    return b"x" * event\n')
  assert.match((await connection.take(NEXT)).join(''), /xGET /) // as large as may be
  connection.write(ACCEPTED, event(TOGETHER + 1))
  const result = (await connection.take(/\r\n\r\nx{65537}/)).join('')
  await sleep(50)
  assert.doesNotMatch([result, ...connection.pieces].join(''), /GET /)
  connection.write(ACCEPTED)
  assert.match((await connection.take(NEXT)).join(''), /^GET /)

  connection.write(event(6_300_000))
  await connection.take(/Content-Length: 6300000\r\n/)
  connection.socket.end(answer('413 Content Too Large', '{}', 'Connection: close'))
  const second = await accept()
  assert.match((await second.take(NEXT)).join(''), /^GET /)
})

test('a result that is refused is followed by the next event', PATIENCE, async (t) => {
  const { connection } = await startWithEvent(t, 0)
  for (const [n, status] of ['400 Bad Request', '403 Forbidden', '413 Content Too Large'].entries()) {
    await connection.take(NEXT)
    connection.write(answer(status, '{"errorType":"Refused"}'), event(n, `id-${n}`))
  }
  assert.match((await connection.take(NEXT)).join(''), /\/id-2\/response [^]*\r\n\r\n2GET /)
})

test('the process ends when a result, or the wait for an event, fails in the Runtime API', PATIENCE, async (t) => {
  const cases = [
    [[answer('500 Internal Server Error', '{}')], '500 to the result of the invocation'],
    [[answer('503 Service Unavailable', '{}'), event(2)], '503 to the result of the invocation'],
    [[ACCEPTED, answer('403 Forbidden', '{}')], '403 to invocation/next'],
  ]
  for (const [answers, message] of cases) {
    const { runtime, connection } = await startWithEvent(t)
    await connection.take(NEXT)
    connection.write(...answers)
    assert.equal((await runtime.exited).code, 1)
    assert.equal(runtime.log, `bootstrap.py: the Runtime API answered ${message}\n`)
  }
})

test('until the event has come, the log is of the request before it', PATIENCE, async (t) => {
  const source = `
import logging, os, threading, time
def handler(event, context):
    def log():
        while not os.path.exists(event):
            time.sleep(0.005)
        logging.warning(os.environ["_X_AMZN_TRACE_ID"])
    if event:
        threading.Thread(target=log).start()
`
  const { runtime, connection } = await start(t, source)
  const flag = `${runtime.directory}/flag`
  await connection.take(NEXT)
  connection.write(answer('200 OK', JSON.stringify(flag), 'Lambda-Runtime-Aws-Request-Id: first', 'Lambda-Runtime-Trace-Id: trace'))
  await connection.take(NEXT)
  const second = event(0)
  connection.write(ACCEPTED, second.subarray(0, -1))
  writeFileSync(flag, '')
  await once(runtime.child.stdout, 'data')
  connection.write(second.subarray(-1))
  await connection.take(NEXT)
  assert.match(runtime.log, /^\[WARNING\]\t\S+\tfirst\ttrace\n$/)
})
