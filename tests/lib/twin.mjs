// A daemon and the simulator side by side: the same scenario is set up in both, the same things happen in the same
// order, and every request must come to the same end.
//
// Nothing hangs on the clock. A request's function reports at a gate (a socket of this test's) as soon as it runs, and
// is held there until the test lets it go; the next step begins only when the one before has come to its end: the
// request runs or has been refused, or its environment is idle again. In the simulator each step takes a tenth of a
// second, and a request lasts from its own step to that of its release.
import assert from 'node:assert/strict'
import { Agent, request as httpRequest } from 'node:http'
import { createServer } from 'node:net'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CreateAliasCommand,
  GetProvisionedConcurrencyConfigCommand,
  PublishVersionCommand,
  PutFunctionConcurrencyCommand,
  PutProvisionedConcurrencyConfigCommand,
  UpdateAliasCommand,
  UpdateFunctionConfigurationCommand,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda'
import { REPOSITORY, runKiln, startKiln, waitUntil } from './kiln.mjs'
import { createProgram } from './programs.mjs'

const WAIT = { timeoutMs: 60_000 }
const STEP_S = 0.1
const PROVISIONING_STEPS = 20 // more than 100 environments are provisioned in that time

/** A shipped scenario without its traffic, its changes and its durations: those are what the test makes happen. */
export function shipped(name) {
  const scenario = JSON.parse(readFileSync(join(REPOSITORY, `examples/scenarios/${name}.json`), 'utf8'))
  for (const unwanted of ['traffic', 'events', 'start', 'duration_s', 'assignment']) delete scenario[unwanted]
  for (const fn of scenario.functions) {
    for (const place of [fn, ...(fn.versions ?? [])]) {
      for (const time of ['duration_ms', 'init_ms', 'shutdown_ms']) delete place[time]
    }
    delete fn.scaling
  }
  return scenario
}

/** The same with a tenth of every limit. */
export function tenth(scenario) {
  const account = { concurrency: scenario.account?.concurrency ?? 1000 }
  return {
    ...scenario,
    account: { concurrency: account.concurrency / 10, unreserved_minimum: 10 },
    functions: scenario.functions.map((fn) => ({
      ...fn,
      ...(fn.reserved && { reserved: fn.reserved / 10 }),
      ...(fn.provisioned && { provisioned: fn.provisioned.map((pc) => ({ ...pc, count: pc.count / 10 })) }),
    })),
  }
}

/** Runs a scenario with traffic `sources`, each {qualifier, lines: [[at_s, function, duration_ms], ...]}. */
export async function simulate(scenario, sources, events, duration_s) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-twin-'))
  try {
    const traffic = sources.map(({ qualifier, lines }, i) => {
      writeFileSync(join(folder, `${i}.csv`), lines.map((line) => line.join(',') + '\n').join(''))
      return { trace: `${i}.csv`, ...(qualifier && { qualifier }) }
    })
    writeFileSync(join(folder, 'scenario.json'), JSON.stringify({ ...scenario, traffic, events, duration_s }))
    const args = ['simulate', join(folder, 'scenario.json'), '--requests', '--format', 'json']
    const { code, stdout, stderr } = await runKiln(args, { timeoutMs: 60_000 })
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Seconds of CLOCK_MONOTONIC, by which the daemon decides. */
export const monotonic = () => Number(process.hrtime.bigint()) / 1e9

const serveArguments = ({ account = {} }) =>
  Object.entries(account).flatMap(([name, value]) => [`--${name.replaceAll('_', '-')}`, `${value}`])

/** What a 429 says. */
export function refusal({ status, headers, body }) {
  assert.equal(status, 429, JSON.stringify(body))
  const [, kind, limit, used] = headers['x-kiln-throttle'].match(/^([a-z-]+); limit=(\d+); used=(\d+)$/)
  return { verdict: 'throttled', reason: body.Reason, kind, limit: Number(limit), used: Number(used) }
}

export class Twin {
  static async start(t, scenario) {
    const twin = new Twin()
    twin.scenario = scenario
    twin.kiln = await startKiln({ args: [...serveArguments(scenario), '--network', 'host'] }) // the gate is on its loopback
    twin.agent = new Agent({ keepAlive: true, maxSockets: Infinity })
    t.after(async () => {
      for (const socket of twin.#held.values()) socket.destroy()
      twin.#gate.close()
      twin.agent.destroy()
      await twin.kiln.stop()
    })
    await new Promise((done) => twin.#gate.listen(0, '127.0.0.1', done))
    for (const fn of scenario.functions) await twin.#deploy(fn)
    return twin
  }

  step = 0
  requests = [] // {number, function, qualifier, step, end, seen, answer}
  events = []

  #waiting = new Map() // id -> callback for its report
  #held = new Map() // id -> socket at the gate
  #gate = createServer((socket) => {
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (data) => {
      text += data
      if (!text.startsWith('{')) return socket.destroy() // a stranger, who had something else at this port before
      if (!text.includes('\n')) return
      const { id, answer } = JSON.parse(text)
      this.#held.set(id, socket)
      this.#waiting.get(id)(answer)
    })
  })

  // --- what the daemon is told ---

  async #deploy({ name, versions = [], aliases = [], provisioned = [], reserved }) {
    const { lambda } = this.kiln
    await createProgram(lambda, name, 'origin', { Timeout: 120 })
    for (const [i, { version }] of versions.entries()) {
      if (i > 0) {
        await lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName: name, Description: version }))
        await waitUntilFunctionUpdatedV2(
          { client: lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 },
          { FunctionName: name },
        )
      }
      const { Version } = await lambda.send(new PublishVersionCommand({ FunctionName: name }))
      assert.equal(Version, version, 'versions of these scenarios count from 1')
    }
    for (const { name: Name, version: FunctionVersion } of aliases) {
      await lambda.send(new CreateAliasCommand({ FunctionName: name, Name, FunctionVersion }))
    }
    if (reserved !== undefined) {
      const input = { FunctionName: name, ReservedConcurrentExecutions: reserved }
      await lambda.send(new PutFunctionConcurrencyCommand(input))
    }
    for (const { qualifier, count } of provisioned) await this.#provide(name, qualifier, count)
  }

  async #provide(FunctionName, Qualifier, count) {
    const input = { FunctionName, Qualifier, ProvisionedConcurrentExecutions: count }
    await this.kiln.lambda.send(new PutProvisionedConcurrencyConfigCommand(input))
    await this.#allocated(FunctionName, Qualifier)
  }

  /** Until all PC is there and what is too much has gone. */
  async #allocated(FunctionName, Qualifier) {
    const get = new GetProvisionedConcurrencyConfigCommand({ FunctionName, Qualifier })
    await waitUntil(async () => (await this.kiln.lambda.send(get)).Status === 'READY', { ...WAIT, what: 'READY' })
  }

  /** The whole answer: {status, headers, body}. */
  invoke(name, qualifier, event) {
    const query = qualifier ? `?Qualifier=${encodeURIComponent(qualifier)}` : ''
    return new Promise((done, fail) => {
      const request = httpRequest(
        `${this.kiln.endpoint}/2015-03-31/functions/${name}/invocations${query}`,
        // With the log's tail the answer comes when the environment is idle again.
        { method: 'POST', agent: this.agent, headers: { 'X-Amz-Log-Type': 'Tail' } },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (data) => (text += data))
          response.on('end', () => done({ status: response.statusCode, headers: response.headers, body: JSON.parse(text) }))
          response.on('error', fail)
        },
      )
      request.on('error', fail)
      request.end(JSON.stringify(event))
    })
  }

  // --- what happens ---

  /** A request arrives. Resolves to it when it runs or has been refused. */
  async arrive(name, qualifier) {
    const request = { number: this.requests.length, function: name, qualifier, step: ++this.step }
    const runs = new Promise((done) => this.#waiting.set(request.number, done))
    const event = { gate: this.#gate.address().port, id: request.number }
    this.requests.push(request)
    request.sent_s = monotonic()
    request.answer = this.invoke(name, qualifier, event)
    const report = await Promise.race([runs, request.answer])
    request.decided_s = monotonic() // at the latest
    request.seen = report.status === undefined ? this.#served(request, report) : refusal(report)
    return request
  }

  /** So many arrive, one after the other. */
  async arriveAll(count, name, qualifier) {
    const arrived = []
    for (let i = 0; i < count; i++) arrived.push(await this.arrive(name, qualifier))
    return arrived
  }

  /** A request that runs comes to its end. Resolves when its environment is idle. */
  async release(request) {
    request.end = ++this.step
    this.#held.get(request.number).end()
    this.#held.delete(request.number)
    const { status, headers, body } = await request.answer
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(headers['x-amz-function-error'], undefined, JSON.stringify(body))
    assert.equal(headers['x-amz-executed-version'], request.seen.version)
  }

  /** The first `count` (all) of the requests that run. */
  async releaseAll(requests = this.running(), count = requests.length) {
    for (const request of requests.slice(0, count)) await this.release(request)
  }

  running() {
    return this.requests.filter(({ seen, end }) => seen.verdict !== 'throttled' && end === undefined)
  }

  #change(event) {
    this.events.push({ at_s: ++this.step * STEP_S, ...event })
    this.step += PROVISIONING_STEPS
  }

  /** PC of a qualifier is put anew; that leaves so many environments. */
  async putProvisioned(name, qualifier, count, environments) {
    this.#change({ function: name, qualifier, provisioned: count })
    await this.#provide(name, qualifier, count)
    await this.settles(environments)
  }

  /** An alias gets another version or weights; its PC has followed when this resolves. */
  async route(name, alias, version, weights, environments) {
    this.#change({ function: name, alias, version, weights })
    const RoutingConfig = { AdditionalVersionWeights: weights }
    const input = { FunctionName: name, Name: alias, FunctionVersion: version, RoutingConfig }
    await this.kiln.lambda.send(new UpdateAliasCommand(input))
    await this.#allocated(name, alias)
    await this.settles(environments)
  }

  async health() {
    return (await this.kiln.fetch('/_kiln/health')).json()
  }

  async settles(environments) {
    const what = `${environments} environments`
    await waitUntil(async () => (await this.health()).environments === environments, { ...WAIT, what })
  }

  // --- what became of the requests ---

  #served(request, { type, version, process, count }) {
    const provisioned = type === 'provisioned-concurrency'
    const has = this.scenario.functions
      .find(({ name }) => name === request.function)
      .provisioned?.some(({ qualifier }) => qualifier === request.qualifier)
    return {
      verdict: provisioned ? 'provisioned' : count === 1 ? 'cold' : 'warm',
      version,
      spillover: Boolean(has) && !provisioned,
      process,
    }
  }

  /** What the simulator says about the same steps. */
  simulate() {
    const sources = new Map()
    for (const { function: name, qualifier, step, end } of this.requests) {
      if (!sources.has(qualifier)) sources.set(qualifier, { qualifier, lines: [] })
      sources.get(qualifier).lines.push([step * STEP_S, name, ((end ?? this.step + 1) - step) * STEP_S * 1000])
    }
    return simulate(this.scenario, [...sources.values()], this.events, (this.step + 2) * STEP_S)
  }

  /**
   * Both agree on every request (verdict, version, environment, and which limit a refusal met) and so on every sum.
   * Returns the simulator's result.
   */
  async agree() {
    const simulated = await this.simulate()
    const lines = simulated.requests.toSorted((a, b) => a.number - b.number)
    assert.equal(lines.length, this.requests.length)
    const names = new Map() // environments: ours -> the simulator's
    for (const { number, function: name, qualifier, seen } of this.requests) {
      const line = lines[number]
      const where = `request ${number} (${name}:${qualifier ?? '$LATEST'})`
      const { process, ...ours } = seen
      const theirs = Object.fromEntries(Object.keys(ours).map((key) => [key, line[key]]))
      assert.deepEqual(ours, theirs, where)
      if (!process) continue
      if (!names.has(process)) {
        assert.ok(![...names.values()].includes(line.environment), `${where}: a new environment here, not there`)
        names.set(process, line.environment)
      }
      assert.equal(names.get(process), line.environment, `${where}: environment`)
    }
    assert.deepEqual(this.sums(), sumsOf(simulated))
    return simulated
  }

  /** By function: what was admitted, throttled by reason, spilled, started cold, and run by version. */
  sums() {
    const sums = {}
    for (const { name } of this.scenario.functions) {
      const requests = this.requests.filter((request) => request.function === name).map(({ seen }) => seen)
      const admitted = requests.filter(({ verdict }) => verdict !== 'throttled')
      sums[name] = {
        invocations: admitted.length,
        throttles: count(requests.filter(({ verdict }) => verdict === 'throttled').map(({ reason }) => reason)),
        spillover: admitted.filter(({ spillover }) => spillover).length,
        cold_starts: admitted.filter(({ verdict }) => verdict === 'cold').length,
        versions: count(admitted.map(({ version }) => version)),
      }
    }
    return sums
  }
}

function count(words) {
  const counts = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

function sumsOf({ functions }) {
  return Object.fromEntries(
    Object.entries(functions).map(([name, { invocations, throttles, spillover, cold_starts, versions }]) => [
      name,
      { invocations, throttles, spillover, cold_starts, versions },
    ]),
  )
}
