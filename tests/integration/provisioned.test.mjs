// Provisioned concurrency with real processes: environments are made outside of requests, serve when all are there, are
// replaced when they die, and follow their alias. The worked cases are in cases.test.mjs.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import {
  CreateAliasCommand,
  DeleteAliasCommand,
  DeleteProvisionedConcurrencyConfigCommand,
  GetAccountSettingsCommand,
  GetProvisionedConcurrencyConfigCommand,
  ListProvisionedConcurrencyConfigsCommand,
  PublishVersionCommand,
  PutFunctionConcurrencyCommand,
  PutProvisionedConcurrencyConfigCommand,
  UpdateAliasCommand,
  UpdateFunctionConfigurationCommand,
  waitUntilFunctionUpdatedV2,
  waitUntilPublishedVersionActive,
} from '@aws-sdk/client-lambda'
import { invoke, invokeMany, IS_ROOT, startKiln, temporaryDirectory, waitUntil } from '../lib/kiln.mjs'
import { createProgram } from '../lib/programs.mjs'

const PROVISIONED = 'provisioned-concurrency'
const WAIT = { timeoutMs: 60_000, intervalMs: 20 }
const NAME = 'shop'

async function start(t, ...args) {
  const kiln = await startKiln({ args })
  t.after(() => kiln.stop())
  return kiln
}

const environments = async (kiln) => (await (await kiln.fetch('/_kiln/health')).json()).environments

async function publish(kiln, name = NAME) {
  const { Version } = await kiln.lambda.send(new PublishVersionCommand({ FunctionName: name }))
  await waitUntilPublishedVersionActive(
    { client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 },
    { FunctionName: name, Qualifier: Version },
  )
  return Version
}

/** The function with `versions` versions, each of another configuration. */
async function createShop(kiln, { versions = 1, variables = {} } = {}) {
  await createProgram(kiln.lambda, NAME, 'origin', { Environment: { Variables: variables } })
  for (let i = 1; i <= versions; i++) {
    if (i > 1) {
      await kiln.lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName: NAME, Description: `${i}` }))
      await waitUntilFunctionUpdatedV2(
        { client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 },
        { FunctionName: NAME },
      )
    }
    assert.equal(await publish(kiln), `${i}`)
  }
}

const alias = (kiln, Name, FunctionVersion, weights) =>
  kiln.lambda.send(
    new CreateAliasCommand({
      FunctionName: NAME,
      Name,
      FunctionVersion,
      RoutingConfig: weights && { AdditionalVersionWeights: weights },
    }),
  )

const route = (kiln, Name, FunctionVersion, weights = {}) =>
  kiln.lambda.send(
    new UpdateAliasCommand({
      FunctionName: NAME,
      Name,
      FunctionVersion,
      RoutingConfig: { AdditionalVersionWeights: weights },
    }),
  )

const put = (kiln, Qualifier, count) =>
  kiln.lambda.send(
    new PutProvisionedConcurrencyConfigCommand({
      FunctionName: NAME,
      Qualifier,
      ProvisionedConcurrentExecutions: count,
    }),
  )

const get = (kiln, Qualifier) =>
  kiln.lambda.send(new GetProvisionedConcurrencyConfigCommand({ FunctionName: NAME, Qualifier }))

/** Waits for the end of the allocation and returns it. */
const settled = (kiln, Qualifier) =>
  waitUntil(
    async () => {
      const state = await get(kiln, Qualifier)
      return state.Status !== 'IN_PROGRESS' && state
    },
    { ...WAIT, what: `the end of the allocation on ${Qualifier}` },
  )

const figures = (state) => [
  state.Status,
  state.RequestedProvisionedConcurrentExecutions,
  state.AllocatedProvisionedConcurrentExecutions,
  state.AvailableProvisionedConcurrentExecutions,
]

async function provide(kiln, qualifier, count) {
  await put(kiln, qualifier, count)
  assert.deepEqual(figures(await settled(kiln, qualifier)), ['READY', count, count, count])
}

async function typeOf(kiln, Qualifier) {
  const { payload, functionError } = await invoke(kiln.lambda, NAME, {}, { Qualifier })
  assert.equal(functionError, undefined)
  return payload.type
}

/** How many of `count` parallel invokes ran where: { provisioned, onDemand, throttled, versions, refusals }. */
async function spread(kiln, count, Qualifier, ms = 3000) {
  const { answers, refusals } = await invokeMany(kiln.lambda, NAME, count, { sleep_ms: ms }, { Qualifier })
  for (const { functionError } of answers) assert.equal(functionError, undefined)
  assert.equal(new Set(answers.map(({ payload }) => payload.process)).size, answers.length, 'each in its own process')
  const provisioned = answers.filter(({ payload }) => payload.type === PROVISIONED).length
  return {
    provisioned,
    onDemand: answers.length - provisioned,
    throttled: refusals.length,
    versions: [...new Set(answers.map(({ payload }) => payload.version))],
    refusals,
  }
}

/** Until no environment but the idle ones wanted is left. */
const settlesAt = (kiln, count) =>
  waitUntil(async () => (await environments(kiln)) === count, { ...WAIT, what: `${count} environments` })

test('environments are made without requests, serve first, and the rest spills over', async (t) => {
  const kiln = await start(t)
  await createShop(kiln)
  assert.deepEqual(figures(await put(kiln, '1', 3)), ['IN_PROGRESS', 3, 0, 0])
  assert.deepEqual(figures(await settled(kiln, '1')), ['READY', 3, 3, 3])
  assert.equal(await environments(kiln), 3)
  const { provisioned, onDemand } = await spread(kiln, 5, '1')
  assert.deepEqual([provisioned, onDemand], [3, 2])
  assert.equal(await typeOf(kiln, '$LATEST'), 'on-demand')
})

test('nothing serves before everything is allocated', async (t) => {
  const kiln = await start(t, '--provisioning-rate', '20')
  await createShop(kiln)
  await put(kiln, '1', 3)
  assert.equal(await typeOf(kiln, '1'), 'on-demand')
  const some = await waitUntil(
    async () => {
      const state = await get(kiln, '1')
      return state.AllocatedProvisionedConcurrentExecutions === 2 && state
    },
    { ...WAIT, what: 'two of three allocated' },
  )
  assert.deepEqual(figures(some), ['IN_PROGRESS', 3, 2, 0])
  const type = await typeOf(kiln, '1')
  if ((await get(kiln, '1')).Status === 'IN_PROGRESS') assert.equal(type, 'on-demand')
  assert.deepEqual(figures(await settled(kiln, '1')), ['READY', 3, 3, 3])
  assert.equal(await typeOf(kiln, '1'), PROVISIONED)
})

test('Init runs outside of requests, for longer than on demand', async (t) => {
  const kiln = await start(t)
  await createShop(kiln, { variables: { INIT_SLEEP_MS: '11000' } })
  await provide(kiln, '1', 1)
  const { payload } = await invoke(kiln.lambda, NAME, {}, { Qualifier: '1' })
  assert.deepEqual([payload.type, payload.count], [PROVISIONED, 1])
})

test('the version behind a provisioned alias runs on its environments, and has no configuration itself', async (t) => {
  const kiln = await start(t)
  await createShop(kiln)
  await alias(kiln, 'live', '1')
  await provide(kiln, 'live', 2)
  assert.equal(await typeOf(kiln, 'live'), PROVISIONED)
  assert.equal(await typeOf(kiln, '1'), PROVISIONED)
  await assert.rejects(get(kiln, '1'), {
    name: 'ProvisionedConcurrencyConfigNotFoundException',
    message: 'No Provisioned Concurrency Config found for this function',
  })
  const { ProvisionedConcurrencyConfigs } = await kiln.lambda.send(
    new ListProvisionedConcurrencyConfigsCommand({ FunctionName: NAME }),
  )
  assert.deepEqual(
    ProvisionedConcurrencyConfigs.map((config) => [config.FunctionArn, ...figures(config)]),
    [['arn:aws:lambda:us-east-1:000000000000:function:shop:live', 'READY', 2, 2, 2]],
  )
  const { AccountLimit } = await kiln.lambda.send(new GetAccountSettingsCommand({}))
  assert.equal(AccountLimit.UnreservedConcurrentExecutions, 998)
})

/** Pids, as the host sees them, of the function's runtimes. */
function runtimes() {
  const of = (pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1')
    } catch {
      return ''
    }
  }
  return readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && of(name).split('\0').includes(`AWS_LAMBDA_FUNCTION_NAME=${NAME}-killed`),
  )
}

test('an idle environment whose process is killed is replaced', { skip: !IS_ROOT && 'needs root to kill it' }, async (t) => {
  const kiln = await start(t)
  const name = `${NAME}-killed`
  await createProgram(kiln.lambda, name, 'origin')
  await publish(kiln, name)
  const config = { FunctionName: name, Qualifier: '1' }
  const state = () => kiln.lambda.send(new GetProvisionedConcurrencyConfigCommand(config))
  await kiln.lambda.send(new PutProvisionedConcurrencyConfigCommand({ ...config, ProvisionedConcurrentExecutions: 2 }))
  await waitUntil(async () => (await state()).Status === 'READY', { ...WAIT, what: 'READY' })
  await new Promise((done) => setTimeout(done, 500)) // frozen by now
  const before = runtimes()
  assert.equal(before.length, 2)
  process.kill(Number(before[0]), 'SIGKILL')
  await waitUntil(() => runtimes().length === 2 && !runtimes().includes(before[0]), { ...WAIT, what: 'a replacement' })
  await waitUntil(async () => (await state()).AvailableProvisionedConcurrentExecutions === 2, { ...WAIT, what: 'two' })
  assert.equal((await state()).Status, 'READY')
  const { answers } = await invokeMany(kiln.lambda, name, 2, { sleep_ms: 2000 }, { Qualifier: '1' })
  assert.deepEqual(answers.map(({ payload }) => [payload.type, payload.count]), [[PROVISIONED, 1], [PROVISIONED, 1]])
})

test('an environment that fails in an invoke is replaced, and no invoke pays for its Init', async (t) => {
  const kiln = await start(t)
  await createShop(kiln)
  await provide(kiln, '1', 1)
  const { functionError, payload } = await invoke(kiln.lambda, NAME, { exit: 3 }, { Qualifier: '1' })
  assert.deepEqual([functionError, payload.errorType], ['Unhandled', 'Runtime.ExitError'])
  const replacement = await waitUntil(
    async () => {
      const answer = await invoke(kiln.lambda, NAME, {}, { Qualifier: '1', LogType: 'Tail' })
      assert.equal(answer.functionError, undefined)
      return answer.payload.type === PROVISIONED && answer
    },
    { ...WAIT, what: 'the replacement' },
  )
  assert.match(replacement.log, /^START .*\nEND .*\nREPORT [^\n]*\n$/s)
  assert.doesNotMatch(replacement.log, /INIT_REPORT|Init Duration/)
  assert.deepEqual(figures(await get(kiln, '1')), ['READY', 1, 1, 1])
})

test('lowering ends environments, raising adds to them, deleting ends all', async (t) => {
  const kiln = await start(t)
  await createShop(kiln)
  await provide(kiln, '1', 4)
  await provide(kiln, '1', 1)
  await settlesAt(kiln, 1)
  const { payload: kept } = await invoke(kiln.lambda, NAME, {}, { Qualifier: '1' })
  await provide(kiln, '1', 3)
  assert.equal(await environments(kiln), 3)
  const { answers } = await invokeMany(kiln.lambda, NAME, 3, { sleep_ms: 2000 }, { Qualifier: '1' })
  assert.deepEqual(answers.map(({ payload }) => payload.type), [PROVISIONED, PROVISIONED, PROVISIONED])
  assert.ok(answers.some(({ payload }) => payload.process === kept.process), 'what served goes on serving')
  await kiln.lambda.send(new DeleteProvisionedConcurrencyConfigCommand({ FunctionName: NAME, Qualifier: '1' }))
  await assert.rejects(get(kiln, '1'), { name: 'ProvisionedConcurrencyConfigNotFoundException' })
  await settlesAt(kiln, 0)
  assert.equal(await typeOf(kiln, '1'), 'on-demand')
})

test('provisioned concurrency goes with its alias', async (t) => {
  const kiln = await start(t)
  await createShop(kiln)
  await alias(kiln, 'live', '1')
  await provide(kiln, 'live', 2)
  await kiln.lambda.send(new DeleteAliasCommand({ FunctionName: NAME, Name: 'live' }))
  await settlesAt(kiln, 0)
  await assert.rejects(get(kiln, 'live'), { name: 'ResourceNotFoundException' })
})

test('a moved alias has its new environments before the old ones go', async (t) => {
  const kiln = await start(t, '--provisioning-rate', '20')
  await createShop(kiln, { versions: 2 })
  await alias(kiln, 'live', '1')
  await provide(kiln, 'live', 2)
  await route(kiln, 'live', '2')
  assert.equal((await get(kiln, 'live')).Status, 'IN_PROGRESS')
  const old = await typeOf(kiln, '1')
  // The second one comes three seconds later; a machine that has slept through that shows nothing here.
  if ((await get(kiln, 'live')).Status === 'IN_PROGRESS') assert.equal(old, PROVISIONED)
  assert.deepEqual(figures(await settled(kiln, 'live')), ['READY', 2, 2, 2])
  const { provisioned, versions } = await spread(kiln, 2, 'live')
  assert.deepEqual([provisioned, versions], [2, ['2']])
  await settlesAt(kiln, 2)
  assert.equal(await typeOf(kiln, '1'), 'on-demand')
})

test('a canary: provisioned concurrency is divided by weight and follows it', async (t) => {
  const kiln = await start(t)
  await createShop(kiln, { versions: 2 })
  await alias(kiln, 'prod', '1')
  await provide(kiln, 'prod', 20)
  const divided = async () => [(await spread(kiln, 20, '1')).provisioned, (await spread(kiln, 20, '2')).provisioned]
  assert.deepEqual(await divided(), [20, 0])
  await route(kiln, 'prod', '1', { 2: 0.1 })
  assert.deepEqual(figures(await settled(kiln, 'prod')), ['READY', 20, 20, 20])
  assert.deepEqual(await divided(), [18, 2])
  await route(kiln, 'prod', '2')
  assert.deepEqual(figures(await settled(kiln, 'prod')), ['READY', 20, 20, 20])
  assert.deepEqual(await divided(), [0, 20])
})

test('a failing Init ends in FAILED with its reason, and requests run on demand', async (t) => {
  const kiln = await start(t)
  await createShop(kiln, { variables: { INIT_EXIT: '7' } })
  await put(kiln, '1', 1)
  const state = await settled(kiln, '1')
  assert.deepEqual(figures(state), ['FAILED', 1, 0, 0])
  assert.equal(state.StatusReason, 'FUNCTION_ERROR_INIT_FAILURE')
  await settlesAt(kiln, 0)
  const { functionError, payload } = await invoke(kiln.lambda, NAME, {}, { Qualifier: '1' })
  assert.deepEqual([functionError, payload.errorType], ['Unhandled', 'Runtime.ExitError'])
  assert.match(kiln.log, /provisioned concurrency of shop:1: FAILED/)
})

test('what is wanted survives a crash of the daemon, and is made again', async (t) => {
  const dataDir = temporaryDirectory()
  const first = await startKiln({ dataDir })
  await createShop(first)
  await alias(first, 'live', '1')
  await provide(first, 'live', 2)
  const { LastModified } = await get(first, 'live')
  await first.kill()
  const second = await startKiln({ dataDir })
  t.after(() => second.stop())
  const state = await settled(second, 'live')
  assert.deepEqual([...figures(state), state.LastModified], ['READY', 2, 2, 2, LastModified])
  assert.equal((await spread(second, 2, 'live')).provisioned, 2)
})

test('what was accepted stays in force when a restart has lower limits', async (t) => {
  const dataDir = temporaryDirectory()
  const reserve = (kiln, count) =>
    kiln.lambda.send(
      new PutFunctionConcurrencyCommand({ FunctionName: NAME, ReservedConcurrentExecutions: count }),
    )
  const first = await startKiln({ dataDir })
  await createShop(first)
  await provide(first, '1', 6)
  await first.kill()
  const second = await startKiln({ dataDir, args: ['--concurrency', '8', '--unreserved-minimum', '4'] })
  assert.deepEqual(figures(await settled(second, '1')), ['READY', 6, 6, 6])
  assert.equal((await spread(second, 6, '1')).provisioned, 6)
  await reserve(second, 0)
  await second.kill()
  const third = await startKiln({ dataDir })
  t.after(() => third.stop())
  assert.deepEqual(figures(await settled(third, '1')), ['READY', 6, 6, 6])
  await assert.rejects(invoke(third.lambda, NAME), { name: 'TooManyRequestsException' })
  await reserve(third, 6)
  assert.equal((await spread(third, 6, '1')).provisioned, 6)
})

test('reserved concurrency that is all provisioned leaves nothing for $LATEST', async (t) => {
  const kiln = await start(t)
  await createShop(kiln)
  await provide(kiln, '1', 2)
  const reserve = (count) =>
    kiln.lambda.send(
      new PutFunctionConcurrencyCommand({ FunctionName: NAME, ReservedConcurrentExecutions: count }),
    )
  await assert.rejects(reserve(1), {
    message: " ReservedConcurrentExecutions  1 should not be lower than function's total provisioned concurrency [2].",
  })
  await reserve(2)
  await assert.rejects(invoke(kiln.lambda, NAME), {
    name: 'TooManyRequestsException',
    Reason: 'ReservedFunctionConcurrentInvocationLimitExceeded',
  })
  const { provisioned, throttled } = await spread(kiln, 3, '1')
  assert.deepEqual([provisioned, throttled], [2, 1])
  await assert.rejects(put(kiln, '1', 3), {
    message:
      'Requested Provisioned Concurrency should not be greater than the reservedConcurrentExecution for function',
  })
})

test('--strict-aws refuses provisioned concurrency together with weights', async (t) => {
  const kiln = await start(t, '--strict-aws')
  await createShop(kiln, { versions: 2 })
  await alias(kiln, 'prod', '1', { 2: 0.1 })
  const message = 'Alias with weights can not be used with Provisioned Concurrency'
  await assert.rejects(put(kiln, 'prod', 1), { name: 'InvalidParameterValueException', message })
  await route(kiln, 'prod', '1')
  await put(kiln, 'prod', 1)
  await assert.rejects(route(kiln, 'prod', '1', { 2: 0.1 }), { name: 'InvalidParameterValueException', message })
})
