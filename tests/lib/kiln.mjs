// Starts the real daemon for a test: a free port, an empty data directory, and the AWS SDK pointed at it.
//
//   const kiln = await startKiln({ args: ['--concurrency', '50'] })
//   t.after(() => kiln.stop())
//   await createFunction(kiln.lambda, { FunctionName: 'hello', Code: { ZipFile: pythonZip('...') } })
//   const { payload } = await invoke(kiln.lambda, 'hello', { a: 1 })
//
// KILN_BINARY names another build (default build/kiln); KILN_VERBOSE=1 shows the daemon's own log as it comes.
import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  CreateFunctionCommand,
  InvokeCommand,
  LambdaClient,
  waitUntilFunctionActiveV2,
} from '@aws-sdk/client-lambda'
import { zip } from './zip.mjs'

export { sleep, zip }

export const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
export const BINARY = resolve(REPOSITORY, process.env.KILN_BINARY ?? 'build/kiln')
export const ROLE = 'arn:aws:iam::000000000000:role/lambda-role'
export const IS_ROOT = process.getuid() === 0

const READY_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 30_000

// Daemons still running when the test process ends, however it ends.
const running = new Set()
process.on('exit', () => {
  for (const daemon of running) daemon.child.kill('SIGKILL')
})

/** Polls until `condition` returns something truthy, and returns that; throws after `timeoutMs`. */
export async function waitUntil(condition, { timeoutMs = 10_000, intervalMs = 20, what = 'the condition' } = {}) {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (Date.now() > deadline) throw new Error(`${what} did not come true within ${timeoutMs} ms`)
    await sleep(intervalMs)
  }
}

export function temporaryDirectory(uid) {
  const directory = mkdtempSync(join(tmpdir(), 'kiln-test-'))
  if (uid !== undefined) chownSync(directory, uid, uid)
  return directory
}

class Kiln {
  constructor(child, dataDir, keepData) {
    this.child = child
    this.pid = child.pid
    this.dataDir = dataDir
    this.keepData = keepData
    this.log = ''
    this.exited = new Promise((done) => child.on('close', (code, signal) => done({ code, signal })))
    this.exited.then(() => running.delete(this))
    running.add(this)
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (text) => {
        this.log += text
        if (process.env.KILN_VERBOSE) process.stderr.write(text)
      })
    }
  }

  /** Waits for the one line with the address, then for the health check. */
  async ready() {
    const dead = this.exited.then(({ code, signal }) => {
      throw new Error(`kiln ended before it was ready (${signal ?? `exit ${code}`}):\n${this.log}`)
    })
    dead.catch(() => {})
    const address = () => this.log.match(/(?:127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]|localhost):(\d+)/)
    const [, port] = await Promise.race([dead, waitUntil(address, { timeoutMs: READY_TIMEOUT_MS, what: 'ready line' })])
    this.port = Number(port)
    this.endpoint = `http://127.0.0.1:${port}`
    const healthy = async () => (await this.fetch('/_kiln/health')).status === 200
    await Promise.race([dead, waitUntil(healthy, { timeoutMs: READY_TIMEOUT_MS, what: 'health check' })])
    this.lambda = this.client()
    return this
  }

  /** A plain HTTP request, for what the SDK would not send. */
  fetch(path, options) {
    return fetch(this.endpoint + path, options)
  }

  /** An SDK client that does not retry and opens as many connections as there are requests. */
  client(options = {}) {
    return new LambdaClient({
      endpoint: this.endpoint,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      maxAttempts: 1,
      requestHandler: { httpAgent: { maxSockets: 2000 }, requestTimeout: 120_000 },
      ...options,
    })
  }

  /** SIGTERM and an orderly end. Throws when the daemon does not end, or ends with another status than 0. */
  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGTERM')
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    const { code, signal } = await this.exited
    clearTimeout(timer)
    this.#forget()
    if (code !== 0) throw new Error(`kiln ended with ${signal ?? `exit ${code}`}:\n${this.log.slice(-4000)}`)
  }

  /** Ends the daemon at once, as a crash would. The data directory stays for the next start. */
  async kill(signal = 'SIGKILL') {
    this.child.kill(signal)
    await this.exited
    this.lambda?.destroy()
  }

  #forget() {
    this.lambda?.destroy()
    if (!this.keepData) rmSync(this.dataDir, { recursive: true, force: true })
  }
}

/** A daemon's process without waiting for anything: for tests of options and refusals. */
export function spawnKiln({ args = [], env = {}, dataDir, uid, binary = BINARY } = {}) {
  if (!existsSync(binary)) throw new Error(`${binary} is not there; run make first`)
  const directory = dataDir ?? temporaryDirectory(uid)
  const child = spawn(binary, ['serve', '--listen', '127.0.0.1:0', '--data-dir', directory, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  return new Kiln(child, directory, dataDir !== undefined)
}

/**
 * A daemon that is ready. `dataDir` is made and removed unless given; `uid` starts it as that user (rootless), who must
 * be able to read `binary`.
 * End it with stop(), which throws when the end was not clean.
 */
export async function startKiln(options) {
  const kiln = spawnKiln(options)
  try {
    return await kiln.ready()
  } catch (error) {
    kiln.child.kill('SIGKILL')
    throw error
  }
}

/** Runs `kiln` with other arguments to its end: { code, signal, stdout, stderr }. */
export function runKiln(args, { env = {}, timeoutMs = 10_000 } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(BINARY, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs)
    for (const name of ['stdout', 'stderr']) child[name].on('data', (text) => (output[name] += text))
    child.on('error', fail)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      done({ code, signal, ...output })
    })
  })
}

export function pythonZip(source, name = 'index.py') {
  return zip({ [name]: source })
}

export function nodeZip(source, name = 'index.mjs') {
  return zip({ [name]: source })
}

/** Creates a function (python3.12, index.handler unless said otherwise) and waits until it is Active. */
export async function createFunction(client, parameters) {
  const answer = await client.send(
    new CreateFunctionCommand({ Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, ...parameters }),
  )
  await waitUntilFunctionActiveV2(
    { client, minDelay: 1, maxDelay: 1, maxWaitTime: 30 },
    { FunctionName: parameters.FunctionName },
  )
  return answer
}

/**
 * Invokes and decodes: { status, payload, text, functionError, version, log }. `payload` is the parsed answer, or
 * undefined when it is empty; `log` is there when LogType Tail was asked for. Refusals throw the SDK's exceptions.
 */
export async function invoke(client, name, event = {}, parameters = {}) {
  const answer = await client.send(
    new InvokeCommand({ FunctionName: name, Payload: Buffer.from(JSON.stringify(event)), ...parameters }),
  )
  const text = Buffer.from(answer.Payload ?? []).toString()
  return {
    status: answer.StatusCode,
    payload: text === '' ? undefined : JSON.parse(text),
    text,
    functionError: answer.FunctionError,
    version: answer.ExecutedVersion,
    log: answer.LogResult && Buffer.from(answer.LogResult, 'base64').toString(),
  }
}

/**
 * Invokes `count` times at once and sorts the outcomes: { answers, refusals }, where refusals are the exceptions of
 * throttled calls. Any other failure throws.
 */
export async function invokeMany(client, name, count, event = {}, parameters = {}) {
  const settled = await Promise.allSettled(Array.from({ length: count }, () => invoke(client, name, event, parameters)))
  const answers = settled.filter(({ status }) => status === 'fulfilled').map(({ value }) => value)
  const refusals = settled.filter(({ status }) => status === 'rejected').map(({ reason }) => reason)
  for (const refusal of refusals) if (refusal.name !== 'TooManyRequestsException') throw refusal
  return { answers, refusals }
}
