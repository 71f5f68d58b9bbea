// The nine worked cases of the concurrency model with real processes, a tenth in size, against the simulator: what is
// admitted, throttled (and by which limit), spilled, started cold and run by which version must be the same in both.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sleep } from '../lib/kiln.mjs'
import { monotonic, refusal, shipped, simulate, tenth, Twin } from '../lib/twin.mjs'

/** These scenarios call their versions 7 and 8; the daemon counts from 1. */
function versionsFrom1(scenario) {
  return JSON.parse(JSON.stringify(scenario).replaceAll('"7"', '"1"').replaceAll('"8"', '"2"'))
}

const verdicts = (requests, verdict) => requests.filter(({ seen }) => seen.verdict === verdict).length

test('case 1: ten requests on six environments', async (t) => {
  const twin = await Twin.start(t, shipped('case-1-ten-requests'))
  const first = await twin.arriveAll(5, 'f')
  for (const request of first.slice(0, 3)) {
    await twin.release(request)
    await twin.arrive('f')
  }
  await twin.arrive('f')
  await twin.release(first[3])
  await twin.arrive('f')
  await twin.releaseAll()
  const { requests } = await twin.agree()
  requests.sort((a, b) => a.number - b.number)
  assert.equal(requests.map(({ environment }) => environment).join(''), 'ABCDEABCFD')
})

test('case 2: orange is throttled at its 40 though 40 stand unused, the others at 20', async (t) => {
  const twin = await Twin.start(t, tenth(shipped('case-2-reserved')))
  await twin.arriveAll(25, 'orange')
  await twin.arriveAll(15, 'green')
  assert.equal(verdicts(await twin.arriveAll(20, 'orange'), 'throttled'), 5)
  assert.equal(verdicts(await twin.arriveAll(10, 'purple'), 'throttled'), 5)
  await twin.arriveAll(1, 'green')
  await twin.arriveAll(1, 'blue')
  await twin.releaseAll(twin.running(), 30)
  await twin.arriveAll(20, 'orange')
  await twin.arriveAll(20, 'purple')
  await twin.releaseAll()
  await twin.agree()
})

test('case 3: PC 40 warm, 60 spill, then the account is full', async (t) => {
  const twin = await Twin.start(t, tenth(shipped('case-3-provisioned')))
  for (const [already, count] of [[0, 30], [30, 60], [60, 90], [90, 120]]) {
    await twin.arriveAll(count - already, 'orange', '1')
  }
  assert.equal(verdicts(twin.requests, 'provisioned'), 40)
  assert.equal(verdicts(twin.requests, 'cold'), 60)
  assert.equal(verdicts(twin.requests, 'throttled'), 20)
  await twin.releaseAll(twin.running(), 70)
  await twin.arriveAll(70, 'orange', '1')
  await twin.releaseAll()
  await twin.agree()
})

test('case 4: PC 20 of RC 40; the 41st is throttled though 60 are free', async (t) => {
  const twin = await Twin.start(t, tenth(shipped('case-4-provisioned-in-reserved')))
  await twin.arriveAll(20, 'orange', '1')
  await twin.arriveAll(20, 'orange', '1')
  await twin.arriveAll(1, 'orange', '1')
  assert.equal(verdicts(twin.requests, 'provisioned'), 20)
  assert.equal(verdicts(twin.requests, 'throttled'), 1)
  await twin.arriveAll(1, 'orange')
  await twin.releaseAll(twin.running(), 15)
  await twin.arriveAll(12, 'orange')
  await twin.arriveAll(12, 'orange', '1')
  await twin.releaseAll()
  await twin.agree()
})

// The rate and the scaling rate go by the moments at which requests arrive, so these two are replayed: the simulator gets
// the moments that were measured, and must come to the same verdict on every request. A decision is made somewhere
// between sending and answer; a run in which that leaves room for two verdicts, because this process or the daemon had
// to wait for the processor at the wrong moment, shows nothing and is made again.
const ATTEMPTS = 25

async function untilConclusive(attempt) {
  for (let i = 0; i < ATTEMPTS; i++) {
    const result = await attempt()
    if (result) return result
  }
  throw new Error(`no conclusive run in ${ATTEMPTS}`)
}

/** The simulator's verdicts, in order, on requests for `name` that arrive at these moments and take `duration_ms`. */
async function replay(scenario, name, moments_s, duration_ms) {
  const origin_s = Math.floor(moments_s[0]) // a whole second, so that the slots of the rate are where they were
  const lines = moments_s.map((at_s) => [(at_s - origin_s).toFixed(9), name, duration_ms])
  const { requests } = await simulate(scenario, [{ lines }], [], moments_s.at(-1) - origin_s + 1)
  requests.sort((a, b) => a.number - b.number)
  return requests.map(({ verdict, reason, kind, limit, used }) =>
    verdict === 'throttled' ? { verdict, reason, kind, limit, used } : { verdict: 'admitted' },
  )
}

const throttledOnly = (seen) => (seen.verdict === 'throttled' ? seen : { verdict: 'admitted' })
const throttledOf = (seen) => seen.filter(({ verdict }) => verdict === 'throttled').length
const until = async (moment_s) => {
  while (monotonic() < moment_s) await sleep(Math.max(1, (moment_s - monotonic()) * 1000))
}

// 100 requests/s at a limit of 5, which is a rate of 50/s: ten at the beginning of each slot of 100 ms.
test('case 5: half of twice the request rate is throttled', async (t) => {
  const scenario = { ...shipped('case-5-request-rate'), account: { concurrency: 5 } }
  const twin = await Twin.start(t, scenario)
  const slotOf = (moment_s) => Math.floor(moment_s * 10)
  await twin.invoke('f', undefined, {})
  const run = await untilConclusive(async () => {
    const requests = []
    await sleep(1100) // nothing that was is in the sliding second any more
    for (let slot = 0; slot < 20; slot++) {
      await until((slotOf(monotonic()) + 1) / 10 + 0.005)
      for (let i = 0; i < 10; i++) {
        const sent_s = monotonic()
        const answer = await twin.invoke('f', undefined, {})
        requests.push({ sent_s, seen: answer.status === 200 ? { verdict: 'admitted' } : refusal(answer) })
        if (slotOf(sent_s) !== slotOf(monotonic())) return undefined
      }
    }
    return requests
  })
  const seen = run.map((request) => request.seen)
  const moments_s = run.map(({ sent_s }) => sent_s)
  assert.deepEqual(seen, await replay(scenario, 'f', moments_s, 0.001))
  // With no slot left out it is exactly half.
  const slots = moments_s.map(slotOf)
  if (slots.at(-1) - slots[0] === 19) assert.equal(throttledOf(seen), 100)
  assert.equal(seen.find(({ verdict }) => verdict === 'throttled').reason, 'FunctionInvocationRateLimitExceeded')
})

// 20 environments at once and 2 a second after. One token more every half second since the first was taken, so two
// requests in the middle of each half second: one starts an environment, the other is throttled.
test('case 7: a step is paced by the scaling rate', async (t) => {
  const RATE = 20
  const scenario = { ...shipped('case-7-scaling-rate'), account: { concurrency: 100, scaling_rate: RATE } }
  const { requests, early } = await untilConclusive(async () => {
    const twin = await Twin.start(t, scenario)
    await twin.arriveAll(RATE, 'f')
    const [{ sent_s: start_s }] = twin.requests
    for (let i = 0; i < 6; i++) {
      await until(start_s + (Math.floor((monotonic() - start_s) * 2) + 1) / 2 + 0.25)
      await twin.arriveAll(2, 'f')
    }
    // The earliest and the latest that each decision may have been made after the first one. Tokens only grow with time:
    // when both give the same verdicts, all between do.
    const moments = (first, others) => twin.requests.map((request, i) => request[i ? others : first])
    const early = await replay(scenario, 'f', moments('decided_s', 'sent_s'), 60_000)
    const late = await replay(scenario, 'f', moments('sent_s', 'decided_s'), 60_000)
    return JSON.stringify(early) === JSON.stringify(late) && { requests: twin.requests, early }
  })
  const seen = requests.map((request) => throttledOnly(request.seen))
  assert.deepEqual(seen, early)
  assert.ok(seen.length - throttledOf(seen) > RATE + 3 && throttledOf(seen) > 3)
  const { reason, kind } = seen.find(({ verdict }) => verdict === 'throttled')
  assert.deepEqual([reason, kind], ['FunctionInvocationRateLimitExceeded', 'scaling-rate'])
})

test('case 6: 6 of PC 10 busy, and two at most of a slow one', async (t) => {
  const scenario = tenth(shipped('case-6-utilization'))
  scenario.functions[1].provisioned[0].count = 10 // two of them overlap, so not a tenth
  const twin = await Twin.start(t, scenario)
  let slow = await twin.arrive('slow', '1')
  for (let minute = 0; minute < 4; minute++) {
    const busy = await twin.arriveAll(6, 'busy', '1')
    const next = await twin.arrive('slow', '1')
    await twin.release(slow)
    await twin.releaseAll(busy)
    slow = next
  }
  await twin.releaseAll()
  const { functions } = await twin.agree()
  assert.equal(functions.busy.max_provisioned_utilization, 0.6)
  assert.equal(functions.slow.max_provisioned_executions, 2)
  assert.deepEqual([functions.busy.spillover, functions.slow.spillover], [0, 0])
})

test("case 8: the shop's Friday", async (t) => {
  const twin = await Twin.start(t, tenth(versionsFrom1(shipped('case-8-friday'))))
  const calm = await twin.arriveAll(30, 'shop', 'prod')
  assert.equal(verdicts(calm, 'provisioned'), 30)
  const rush = await twin.arriveAll(37, 'shop', 'prod')
  assert.equal(verdicts(rush, 'cold'), 27)
  const peak = await twin.arriveAll(18, 'shop', 'prod')
  assert.equal(verdicts(peak, 'throttled'), 5)
  assert.equal(peak.at(-1).seen.reason, 'ReservedFunctionConcurrentInvocationLimitExceeded')
  await twin.releaseAll(twin.running(), 50)
  await twin.arriveAll(10, 'shop', 'prod')
  // Noon: PC goes to 5. The idle ones end at once, the busy ones after their invoke.
  const provisioned = twin.running().filter(({ seen }) => seen.verdict === 'provisioned')
  const idle = 40 - provisioned.length
  await twin.putProvisioned('shop', 'prod', 5, 80 - Math.min(idle, 35))
  await twin.releaseAll()
  await twin.settles(45)
  await sleep(1100) // what PC admitted within the last second counts against ten times the 5
  await twin.arriveAll(8, 'shop', 'prod')
  await twin.releaseAll()
  await twin.agree()
})

test('case 9: PC follows a canary', async (t) => {
  const twin = await Twin.start(t, versionsFrom1(shipped('case-9-canary')))
  assert.equal(verdicts(await twin.arriveAll(50, 'shop', 'prod'), 'provisioned'), 50)
  await twin.releaseAll()
  await twin.route('shop', 'prod', '1', { 2: 0.1 }, 50)
  assert.equal(verdicts(await twin.arriveAll(46, 'shop', '1'), 'provisioned'), 45)
  assert.equal(verdicts(await twin.arriveAll(6, 'shop', '2'), 'provisioned'), 5)
  await twin.releaseAll()
  const split = await invokeInParts(twin, 1000, 'shop', 'prod')
  await twin.route('shop', 'prod', '2', {}, 52)
  const after = await twin.arriveAll(51, 'shop', 'prod')
  assert.deepEqual([verdicts(after, 'provisioned'), verdicts(after, 'warm')], [50, 1])
  await twin.arriveAll(2, 'shop', '1')
  await twin.releaseAll()
  await twin.agree()

  // Which version a request gets is drawn at random, in the simulator as well: both draws must be within five standard
  // deviations of a tenth.
  const canary = structuredClone(twin.scenario)
  canary.functions[0].aliases[0].weights = { 2: 0.1 }
  const lines = Array.from({ length: 1000 }, (_, i) => [i * 0.1, 'shop', 1])
  const { versions, provisioned_invocations } = (await simulate(canary, [{ qualifier: 'prod', lines }], [], 101)).functions.shop
  for (const drawn of [split, versions]) {
    assert.equal(drawn[1] + drawn[2], 1000)
    assert.ok(Math.abs(drawn[2] - 100) < 5 * Math.sqrt(1000 * 0.1 * 0.9), `${drawn[2]} of 1000 on the new version`)
  }
  assert.equal(provisioned_invocations, 1000)
})

/** One after the other, no more than half of what PC 50 is good for in a second: {version: requests}, all provisioned. */
async function invokeInParts(twin, count, name, qualifier) {
  const versions = {}
  let next_s = monotonic()
  for (let done = 0; done < count; done++) {
    if (done % 25 === 0) await until((next_s = Math.max(next_s + 0.1, monotonic())))
    const { status, headers, body } = await twin.invoke(name, qualifier, {})
    assert.deepEqual([status, body.type], [200, 'provisioned-concurrency'])
    assert.equal(headers['x-amz-executed-version'], body.version)
    versions[body.version] = (versions[body.version] ?? 0) + 1
  }
  return versions
}
