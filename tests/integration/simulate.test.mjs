// `kiln simulate` and `kiln plan` as programs: options, formats, files, refusals.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY, runKiln } from '../lib/kiln.mjs'

const example = (name) => join(REPOSITORY, `examples/scenarios/${name}.json`)
const TEN = example('case-1-ten-requests')

const folder = mkdtempSync(join(tmpdir(), 'kiln-simulate-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

function file(name, content) {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

async function output(...args) {
  const { code, stdout, stderr } = await runKiln(args, { timeoutMs: 60_000 })
  assert.deepEqual([code, stderr], [0, ''])
  return stdout
}

const json = async (...args) => JSON.parse(await output(...args, '--format', 'json'))

/** One line on standard error, nothing on standard output. */
async function refuses(args, line, status = 2) {
  const { code, stdout, stderr } = await runKiln(args)
  assert.deepEqual([code, stdout, stderr], [status, '', `kiln ${args[0]}: ${line}\n`])
}

// A little of everything that is random.
const RANDOM = {
  duration_s: 90,
  functions: [
    {
      name: 'f',
      versions: [
        { version: 1, duration_ms: { distribution: 'lognormal', p50: 80, p99: 400 }, init_ms: [200, 300] },
        { version: 2, duration_ms: { distribution: 'normal', mean: 90, sd: 20 }, init_ms: 250 },
      ],
      aliases: [{ name: 'prod', version: 1, weights: { 2: 0.25 } }],
      provisioned: [{ qualifier: 'prod', count: 4 }],
      reserved: 8,
    },
  ],
  traffic: [{ function: 'f', qualifier: 'prod', rps: 60, arrivals: 'poisson' }],
  retry: { attempts: 2, base_ms: 100 },
}

test('both commands are listed and explain themselves', async () => {
  const help = await output('help')
  assert.match(help, /^ {2}simulate /m)
  assert.match(help, /^ {2}plan /m)
  for (const command of ['simulate', 'plan']) {
    const text = await output(command, 'nothing.json', '--help')
    assert.match(text, new RegExp(`^Usage: kiln ${command} SCENARIO.json`))
    assert.match(text, /^ {2}--seed N /m)
    assert.equal(await output(command, '-h'), text)
  }
  assert.match(await output('plan', '--help'), /^ {2}--percentile P /m)
})

test('bad command lines are one line and exit 2', async () => {
  for (const command of ['simulate', 'plan']) {
    await refuses([command], `needs a scenario file; kiln ${command} --help says more`)
    await refuses([command, TEN, 'another.json'], "unexpected argument 'another.json'")
    await refuses([command, TEN, '--speed', '3'], "unknown option '--speed'")
    await refuses([command, TEN, '--seed'], '--seed needs a value')
    await refuses([command, TEN, '--seed', '-1'], "--seed: '-1' is not a whole number")
    await refuses([command, TEN, '--seed=18446744073709551616'], "--seed: '18446744073709551616' is not a whole number")
    await refuses([command, join(folder, 'none.json')], `${join(folder, 'none.json')}: No such file or directory`)
  }
  await refuses(['simulate', TEN, '--format', 'xml'], "--format: 'xml' is not table, json or csv")
  await refuses(['simulate', TEN, '--svg='], '--svg: must not be empty')
  await refuses(['simulate', TEN, '--requests=yes'], '--requests takes no value')
  await refuses(['plan', TEN, '--format', 'csv'], "--format: 'csv' is not table or json")
  for (const value of ['0', '100.1', '-5', 'p99', '', 'nan'])
    await refuses(['plan', TEN, '--percentile', value], `--percentile: '${value}' is not a number above 0 and up to 100`)
})

test('a mistake in a scenario is told by line, column and member', async () => {
  const unknown = file('unknown.json', '{"duration_s": 1,\n "functions": [{"name": "f",\n   "reserve": 5}]}')
  const type = file('type.json', '{"duration_s": 1,\n "functions": [{"name": "f",\n   "reserved": "5"}]}')
  const syntax = file('syntax.json', '{"duration_s": 1,\n "functions": [{"name" "f"}]}')
  const refused = file('refused.json', { duration_s: 1, functions: [{ name: 'f', reserved: 950 }], traffic: [] })
  for (const command of ['simulate', 'plan']) {
    const { stderr } = await runKiln([command, unknown])
    assert.match(stderr, new RegExp(`^kiln ${command}: ${unknown}:3:\\d+: functions\\[0\\]\\.reserve: [^\\n]+\\n$`))
    await refuses([command, type], `${type}:3:16: functions[0].reserved: must be a whole number`)
    const bad = await runKiln([command, syntax])
    assert.deepEqual([bad.code, bad.stdout], [2, ''])
    assert.match(bad.stderr, new RegExp(`^kiln ${command}: ${syntax}:2:\\d+: [^\\n]+\\n$`))
  }
  await refuses(
    ['simulate', refused],
    `${refused}: functions[0].reserved: 950 is refused: it would leave less than the unreserved minimum of 100`,
  )
  await refuses(['plan', refused], `${refused}: there is no traffic to plan for`)
})

test('JSON: the documented members, and nothing else', async () => {
  const result = await json('simulate', file('random.json', RANDOM), '--requests')
  assert.deepEqual(Object.keys(result), [
    'requests', 'seed', 'duration_s', 'functions', 'account', 'events', 'minutes',
  ])
  const f = result.functions.f
  assert.deepEqual(Object.keys(f), [
    'invocations', 'throttled', 'throttles', 'cold_starts', 'spillover', 'provisioned_invocations', 'errors',
    'retries', 'gave_up', 'max_concurrency', 'mean_concurrency', 'max_provisioned_executions',
    'max_provisioned_utilization', 'latency_ms', 'environments', 'versions',
  ])
  assert.deepEqual(Object.keys(f.latency_ms), ['mean', 'p50', 'p90', 'p99', 'max'])
  assert.deepEqual(Object.keys(result.account), [
    'concurrency', 'requests', 'invocations', 'throttled', 'throttles', 'cold_starts', 'spillover', 'errors',
    'max_concurrency', 'mean_concurrency', 'max_unreserved_concurrency', 'max_claimed_concurrency', 'max_environments',
  ])
  assert.equal(result.minutes.length, 2)
  assert.deepEqual(Object.keys(result.minutes[1].functions.f), [
    'Invocations', 'Throttles', 'Errors', 'ConcurrentExecutions', 'Duration', 'ColdStarts',
    'ProvisionedConcurrencyInvocations', 'ProvisionedConcurrencySpilloverInvocations',
    'ProvisionedConcurrentExecutions', 'ProvisionedConcurrencyUtilization', 'ProvisionedConcurrencyUtilizationAverage',
  ])
  assert.deepEqual(Object.keys(result.minutes[1].account), [
    'Invocations', 'Throttles', 'Errors', 'ConcurrentExecutions', 'UnreservedConcurrentExecutions',
    'ClaimedAccountConcurrency',
  ])

  // The parts add up: each attempt has a line, the minutes are the whole, invocations are without the throttled.
  assert.ok(f.throttled > 0 && f.retries > 0 && f.cold_starts > 0 && f.spillover > 0)
  const sum = (values) => values.reduce((a, b) => a + b, 0)
  const lines = (verdict) => result.requests.filter((request) => request.verdict === verdict)
  assert.equal(lines('throttled').length, f.throttled)
  assert.equal(sum(Object.values(f.throttles)), f.throttled)
  assert.equal(lines('cold').length, f.cold_starts)
  assert.equal(result.requests.length, f.invocations + f.throttled)
  assert.equal(sum(result.minutes.map(({ functions }) => functions.f.Invocations)), f.invocations)
  assert.equal(sum(result.minutes.map(({ functions }) => functions.f.Throttles)), f.throttled)
  assert.equal(sum(Object.values(f.versions)), f.invocations)
  assert.equal(f.provisioned_invocations + f.spillover, f.invocations)
  assert.equal(lines('throttled')[0].reason, 'ReservedFunctionConcurrentInvocationLimitExceeded')
  assert.deepEqual([lines('throttled')[0].kind, lines('throttled')[0].limit], ['reserved', 8])
})

test('the same seed gives the same bytes, another seed others', async () => {
  const path = file('random.json', RANDOM)
  const first = await output('simulate', path, '--format=json', '--requests', '--seed', '7')
  assert.equal(await output('simulate', '--seed=7', '--requests', '--format', 'json', path), first)
  assert.notEqual(await output('simulate', path, '--format=json', '--requests', '--seed', '8'), first)
  assert.equal(await output('simulate', file('seeded.json', { ...RANDOM, seed: 7 }), '--format=json', '--requests'), first)
})

test('a table for people, CSV for programs, a line for each request on demand', async () => {
  assert.match(await output('simulate', TEN), /^f +10 +0 +6 /m)
  const minutes = (await output('simulate', TEN, '--format', 'csv')).trimEnd().split('\n')
  assert.match(minutes[0], /^minute,function,Invocations,Throttles,ConcurrentInvocationLimitExceeded,/)
  assert.equal(minutes.length, 3) // one minute: the function and the account
  for (const line of minutes) assert.equal(line.split(',').length, minutes[0].split(',').length)
  const requests = (await output('simulate', TEN, '--format', 'csv', '--requests')).trimEnd().split('\n')
  const [head, ...rows] = requests.map((line) => line.split(','))
  assert.equal(rows.length, 10)
  const column = (name) => rows.map((row) => row[head.indexOf(name)])
  const byNumber = column('number').map((number, i) => [Number(number), column('environment')[i], column('verdict')[i]])
  byNumber.sort(([a], [b]) => a - b)
  assert.deepEqual(byNumber.map(([, environment]) => environment).join(''), 'ABCDEABCFD')
  assert.deepEqual(byNumber.flatMap(([number, , verdict]) => (verdict === 'cold' ? number : [])), [0, 1, 2, 3, 4, 8])
})

test('a picture is written where it is asked for', async () => {
  const svg = join(folder, 'ten.svg')
  await output('simulate', TEN, '--svg', svg)
  assert.match(readFileSync(svg, 'utf8'), /^<svg [^]*<\/svg>\s*$/)
  const nowhere = join(folder, 'none/ten.svg')
  await refuses(['simulate', TEN, '--svg', nowhere], `--svg: ${nowhere}: No such file or directory`, 1)
})

test('a trace is looked for beside its scenario', async () => {
  file('calls.csv', 'seconds,function,duration_ms\n0,f,1500\n0.5,f,\n1,g,20\n')
  const functions = [{ name: 'f', duration_ms: 300 }, { name: 'g' }]
  const result = await json(
    'simulate', file('traced.json', { duration_s: 5, functions, traffic: [{ trace: 'calls.csv' }] }), '--requests',
  )
  assert.deepEqual(
    result.requests.map(({ function: name, at_s, end_s }) => [name, at_s, end_s]),
    [['f', 0.5, 0.8], ['g', 1, 1.02], ['f', 0, 1.5]],
  )
})

// The burst: 30 at once, once a minute; otherwise 10/s of 500 ms.
const BURSTS = {
  account: { concurrency: 100 },
  duration_s: 180,
  functions: [
    {
      name: 'shop',
      versions: [{ version: 1, duration_ms: 500, init_ms: 400 }],
      aliases: [{ name: 'prod', version: 1 }],
    },
  ],
  traffic: [
    { function: 'shop', qualifier: 'prod', rps: 10 },
    { function: 'shop', qualifier: 'prod', at_s: [30, 90, 150].flatMap((at) => Array(30).fill(at)) },
  ],
}

test('plan: what it finds suffices in kiln simulate, and one less does not', async () => {
  const plan = await json('plan', file('bursts.json', BURSTS))
  const { reserved, provisioned, ...outcome } = plan.functions.shop
  assert.deepEqual([reserved.count, provisioned.prod.count], [35, 35])
  assert.deepEqual([reserved.rule, provisioned.prod.rule], [6, 6]) // 10.5/s x 0.5 s, and 10% more
  assert.deepEqual(outcome, { invocations: 1890, cold_starts: 0, throttled: 0, throttled_by_scaling_rate: 0, errors: 0 })
  assert.deepEqual(plan.account, { concurrency: 100, unreserved_minimum: 100, needed_concurrency: 135 })

  const run = async (RC, PC) => {
    const functions = [{ ...BURSTS.functions[0], reserved: RC, provisioned: [{ qualifier: 'prod', count: PC }] }]
    const account = { concurrency: plan.account.needed_concurrency }
    const { functions: found } = await json('simulate', file('with.json', { ...BURSTS, account, functions }))
    return [found.shop.cold_starts, found.shop.throttled]
  }
  assert.deepEqual(await run(35, 35), [0, 0])
  assert.deepEqual(await run(35, 34), [1, 0])
  assert.deepEqual(await run(34, 34), [0, 3])
})

test('plan: a lower percentile needs less, and says what that costs', async () => {
  const path = file('bursts.json', BURSTS)
  const most = (await json('plan', path, '--percentile', '99')).functions.shop
  assert.ok(most.provisioned.prod.count < 35)
  assert.ok(most.cold_starts > 0 && most.cold_starts <= 18)
  assert.ok(most.reserved.count < 35)
  assert.ok(most.throttled > 0 && most.throttled <= 18)
  const table = await output('plan', path, '--percentile=99')
  assert.match(table, new RegExp(`^shop +prod +${most.provisioned.prod.count} +6 +${most.reserved.count} +6$`, 'm'))
  assert.match(table, /^With these, found for 99% of the requests:$/m)
  assert.match(table, /^The account limit must be at least 1\d\d, 100 of them unreserved\. It is 100, which is too low\.$/m)
})
