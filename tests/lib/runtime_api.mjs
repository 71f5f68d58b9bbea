// A Runtime API of the test's own, and a runtime started against it as a plain process.
//
//   const runtime = await startRuntime(t, 'python', { 'index.py': '...' })
//   const { kind, payload } = await runtime.invoke({ a: 1 })   // kind: response, error, init-error or exit
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const RUNTIMES = fileURLToPath(new URL('../../runtimes', import.meta.url))
const COMMANDS = {
  python: ['/usr/bin/python3', '-S', join(RUNTIMES, 'python/bootstrap.py')],
  nodejs: [process.execPath, join(RUNTIMES, 'nodejs/bootstrap.mjs')],
}
const PREFIX = '/2018-06-01/runtime/'
export const ARN = 'arn:aws:lambda:us-east-1:000000000000:function:hello'

async function readBody(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

class Runtime {
  connections = 0
  log = ''
  #waiting = [] // GET next without an event yet
  #events = [] // events without a GET next yet
  #results = new Map() // by request id: what resolves the invocation
  #ended // the outcome once the process or its Init has ended

  constructor() {
    this.server = createServer((request, response) => this.#serve(request, response))
    this.server.keepAliveTimeout = 0
    this.server.on('connection', () => this.connections++)
    this.ready = new Promise((resolve) => (this.onReady = resolve))
  }

  async #serve(request, response) {
    const path = request.url.slice(PREFIX.length)
    if (request.method === 'GET' && path === 'invocation/next') {
      this.onReady({ kind: 'ready' })
      this.#waiting.push(response)
      return this.#hand()
    }
    const body = await readBody(request)
    response.writeHead(202, { 'Content-Type': 'application/json' }).end('{"status":"OK"}')
    const result = { body, headers: request.headers, trailers: request.trailers, text: body.toString() }
    if (path === 'init/error') return this.#end({ kind: 'init-error', ...result, payload: JSON.parse(body) })
    const [, id, kind] = path.split('/')
    const payload = request.headers['content-type'] === 'application/json' ? parsed(result.text) : undefined
    this.#results.get(id)?.({ kind, ...result, payload, id })
    this.#results.delete(id)
  }

  #hand() {
    this.#waiting = this.#waiting.filter((response) => !response.req.socket.destroyed)
    while (this.#waiting.length && this.#events.length) {
      const { headers, body } = this.#events.shift()
      this.#waiting.shift().writeHead(200, { ...headers, 'Content-Length': body.length }).end(body)
    }
  }

  #end(outcome) {
    this.#ended ??= outcome
    this.onReady(outcome)
    for (const resolve of this.#results.values()) resolve(outcome)
    this.#results.clear()
  }

  /** The outcome of one invocation. `event` is sent as JSON unless it is a Buffer. */
  invoke(event = {}, { headers = {}, timeoutMs = 30_000 } = {}) {
    if (this.#ended) return Promise.resolve(this.#ended)
    const id = randomUUID()
    const body = Buffer.isBuffer(event) ? event : Buffer.from(JSON.stringify(event))
    const outcome = new Promise((resolve) => this.#results.set(id, resolve))
    this.#events.push({
      body,
      headers: {
        'Content-Type': 'application/json',
        'Lambda-Runtime-Aws-Request-Id': id,
        'Lambda-Runtime-Deadline-Ms': String(Date.now() + timeoutMs),
        'Lambda-Runtime-Invoked-Function-Arn': ARN,
        'Lambda-Runtime-Trace-Id': 'Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=1',
        ...headers,
      },
    })
    this.#hand()
    return outcome
  }

  /** Resets the connection once the runtime waits on it for its next event. */
  async reset() {
    while (!this.#waiting.length) await setTimeout(1)
    const { socket } = this.#waiting[0].req
    socket.resetAndDestroy()
    await once(socket, 'close')
  }

  start(name, directory, handler, env, encoding) {
    const [command, ...args] = COMMANDS[name]
    this.child = spawn(command, args, {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        LANG: 'en_US.UTF-8',
        AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${this.server.address().port}`,
        AWS_LAMBDA_FUNCTION_NAME: 'hello',
        AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '128',
        AWS_LAMBDA_LOG_GROUP_NAME: '/aws/lambda/hello',
        AWS_LAMBDA_LOG_STREAM_NAME: '2026/01/02/[$LATEST]0123456789abcdef0123456789abcdef',
        LAMBDA_TASK_ROOT: directory,
        _HANDLER: handler,
        ...env,
      },
    })
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding(encoding).on('data', (text) => (this.log += text))
    }
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      this.#end({ kind: 'exit', code, signal })
      return { code, signal }
    })
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL')
    await this.exited
    this.server.closeAllConnections()
    this.server.close()
  }
}

function parsed(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Starts a runtime on files of a fresh directory; ended after the test. */
export async function startRuntime(t, name, files, { handler = 'index.handler', env = {}, encoding = 'utf8' } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'kiln-runtime-'))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), content)
  }
  const runtime = new Runtime()
  runtime.directory = directory
  runtime.server.listen(0, '127.0.0.1')
  await once(runtime.server, 'listening')
  runtime.start(name, directory, handler, env, encoding)
  t.after(async () => {
    await runtime.stop()
    rmSync(directory, { recursive: true, force: true })
  })
  return runtime
}
