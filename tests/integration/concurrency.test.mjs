// Concurrency with real processes: the limits hold exactly, say which of them was hit, and every unit comes back however
// an invoke ends.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { DeleteFunctionConcurrencyCommand, PutFunctionConcurrencyCommand } from '@aws-sdk/client-lambda'
import { invoke, invokeMany, sleep, startKiln, waitUntil } from '../lib/kiln.mjs'
import { createProbe } from '../lib/probe.mjs'

async function health(kiln) {
  return (await kiln.fetch('/_kiln/health')).json()
}

async function unitsAreBack(kiln) {
  await waitUntil(async () => (await health(kiln)).concurrency === 0, { what: 'every unit of concurrency being back' })
}

function reserve(kiln, name, count) {
  const input = { FunctionName: name, ReservedConcurrentExecutions: count }
  return kiln.lambda.send(new PutFunctionConcurrencyCommand(input))
}

function assertReason(refusals, reason) {
  for (const refusal of refusals) {
    assert.equal(refusal.$metadata.httpStatusCode, 429)
    assert.equal(refusal.message, 'Rate Exceeded.')
    assert.equal(refusal.Type, 'User')
    assert.equal(refusal.Reason, reason)
  }
}

test('reserved concurrency 5: of 50 parallel invokes exactly 5 run and 45 are throttled', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'sleeper', { Timeout: 20 })
  await reserve(kiln, 'sleeper', 5)
  for (let round = 0; round < 3; round++) {
    const { answers, refusals } = await invokeMany(kiln.lambda, 'sleeper', 50, { sleep_ms: 1500 })
    assert.equal(answers.length, 5)
    assert.equal(refusals.length, 45)
    assertReason(refusals, 'ReservedFunctionConcurrentInvocationLimitExceeded')
    await unitsAreBack(kiln)
  }
  assert.equal((await health(kiln)).environments, 5)
})

test('the 801st concurrent request of a function with 800 reserved is throttled', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'wide', { Timeout: 120 })
  await reserve(kiln, 'wide', 800)
  const held = invokeMany(kiln.lambda, 'wide', 800, { sleep_ms: 20_000 })
  await waitUntil(async () => (await health(kiln)).concurrency === 800, { timeoutMs: 60_000, what: '800 in flight' })
  const { answers, refusals } = await invokeMany(kiln.lambda, 'wide', 1)
  assert.equal(answers.length, 0)
  assertReason(refusals, 'ReservedFunctionConcurrentInvocationLimitExceeded')
  const result = await held
  assert.equal(result.answers.length, 800)
  assert.ok(result.answers.every(({ functionError }) => functionError === undefined))
  await unitsAreBack(kiln)
})

test('functions without reservation share the pool; a reservation is set aside from it', async (t) => {
  const kiln = await startKiln({ args: ['--concurrency', '12', '--unreserved-minimum', '2'] })
  t.after(() => kiln.stop())
  await Promise.all(['a', 'b', 'c'].map((name) => createProbe(kiln.lambda, name, { Timeout: 20 })))
  await reserve(kiln, 'a', 4)
  const [b, c] = await Promise.all([
    invokeMany(kiln.lambda, 'b', 10, { sleep_ms: 2000 }),
    invokeMany(kiln.lambda, 'c', 10, { sleep_ms: 2000 }),
    sleep(500).then(() => invokeMany(kiln.lambda, 'a', 5, { sleep_ms: 500 })).then(({ answers, refusals }) => {
      assert.equal(answers.length, 4)
      assertReason(refusals, 'ReservedFunctionConcurrentInvocationLimitExceeded')
    }),
  ])
  assert.equal(b.answers.length + c.answers.length, 8)
  assertReason([...b.refusals, ...c.refusals], 'ConcurrentInvocationLimitExceeded')
  await unitsAreBack(kiln)
})

test('a 429 says in a header which limit was hit and its value', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'off')
  await reserve(kiln, 'off', 0)
  const answer = await kiln.fetch('/2015-03-31/functions/off/invocations', { method: 'POST', body: '{}' })
  assert.equal(answer.status, 429)
  assert.equal(answer.headers.get('x-amzn-errortype'), 'TooManyRequestsException')
  assert.equal(answer.headers.get('x-kiln-throttle'), 'reserved; limit=0; used=0')
  assert.deepEqual(await answer.json(), {
    Reason: 'ReservedFunctionConcurrentInvocationLimitExceeded',
    Type: 'User',
    message: 'Rate Exceeded.',
  })
  await kiln.lambda.send(new DeleteFunctionConcurrencyCommand({ FunctionName: 'off' }))
  assert.equal((await invoke(kiln.lambda, 'off')).status, 200)
})

test('the scaling rate bounds new environments, and the 429 says so', async (t) => {
  const kiln = await startKiln({ args: ['--scaling-rate', '3'] })
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'steep', { Timeout: 20 })
  const { answers, refusals } = await invokeMany(kiln.lambda, 'steep', 10, { sleep_ms: 1000 })
  assert.equal(answers.length, 3)
  assertReason(refusals, 'FunctionInvocationRateLimitExceeded')
})

test('ten times the reserved concurrency is the request rate', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'quick')
  await reserve(kiln, 'quick', 1)
  // A busy machine only makes what is seen from here longer, so each bound is looked at from the side that it cannot move:
  // eleven cannot have been admitted in less than the window, and ten must have been before one is throttled.
  const admitted = [] // when each was sent and answered
  const throttled = []
  for (let attempt = 0; admitted.length < 25 || !throttled.length; attempt++) {
    assert.ok(attempt < 20_000, `${admitted.length} admitted, ${throttled.length} throttled`)
    const sent = performance.now()
    try {
      await invoke(kiln.lambda, 'quick')
      admitted.push({ sent, answered: performance.now() })
    } catch (error) {
      assert.equal(error.name, 'TooManyRequestsException')
      assert.equal(error.Reason, 'ReservedFunctionInvocationRateLimitExceeded')
      throttled.push(sent)
    }
  }
  for (let i = 10; i < admitted.length; i++) {
    assert.ok(admitted[i].answered - admitted[i - 10].sent >= 900, `the one ten after number ${i - 10}`) // ten slots of 100 ms
  }
  for (const sent of throttled) {
    const before = admitted.filter(({ sent: other, answered }) => other < sent && answered > sent - 1000)
    assert.ok(before.length >= 10, `throttled after ${before.length}`)
  }
})

test('a sequential caller is never throttled, whatever its environment still has to do', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'serial')
  await reserve(kiln, 'serial', 20) // ten times that is the request rate
  for (let i = 0; i < 150; i++) assert.equal((await invoke(kiln.lambda, 'serial')).functionError, undefined)
})

test('a caller who waits for the environment to be free uses one environment', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'serial')
  const pids = new Set()
  for (let i = 1; i <= 100; i++) {
    const { payload } = await invoke(kiln.lambda, 'serial', {}, { LogType: 'Tail' })
    assert.equal(payload.count, i)
    pids.add(payload.pid)
  }
  assert.equal(pids.size, 1)
  assert.equal((await health(kiln)).environments, 1)
})

test('crash loops, exits and timeouts give every unit back', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'frail', { Timeout: 1 })
  await reserve(kiln, 'frail', 3)
  const kinds = [
    [{ exit: 3 }, 'Runtime.ExitError', /^RequestId: [0-9a-f-]{36} Error: Runtime exited with error: exit status 3$/],
    [{ exit: 0 }, 'Runtime.ExitError', /^RequestId: [0-9a-f-]{36} Error: Runtime exited without providing a reason$/],
    [{ signal: 9 }, 'Runtime.ExitError', /^RequestId: [0-9a-f-]{36} Error: Runtime exited with error: signal: killed$/],
    [{ hang: 1 }, 'Sandbox.Timedout', /^RequestId: [0-9a-f-]{36} Error: Task timed out after 1.00 seconds$/],
  ]
  for (const [event, type, message] of kinds) {
    for (let round = 0; round < 3; round++) {
      const { answers } = await invokeMany(kiln.lambda, 'frail', 3, event)
      assert.equal(answers.length, 3)
      for (const answer of answers) {
        assert.equal(answer.functionError, 'Unhandled')
        assert.equal(answer.payload.errorType, type)
        assert.match(answer.payload.errorMessage, message)
      }
      await unitsAreBack(kiln)
    }
  }
  const { answers } = await invokeMany(kiln.lambda, 'frail', 3)
  assert.equal(answers.filter(({ functionError }) => functionError === undefined).length, 3)
  await unitsAreBack(kiln)
})

test('one timeout leaves the other invokes of the function alone', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'mixed', { Timeout: 2 })
  const [hung, ...good] = await Promise.all([
    invoke(kiln.lambda, 'mixed', { hang: 1 }),
    ...Array.from({ length: 4 }, () => invoke(kiln.lambda, 'mixed', { sleep_ms: 1000 })),
  ])
  assert.equal(hung.payload.errorType, 'Sandbox.Timedout')
  for (const answer of good) assert.equal(answer.functionError, undefined)
})

test('a caller that vanishes does not end its invoke, which holds its unit until it is done', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'orphan', { Timeout: 20 })
  await reserve(kiln, 'orphan', 2)
  const body = JSON.stringify({ sleep_ms: 2000 })
  const sockets = Array.from({ length: 2 }, () => {
    const socket = connect(kiln.port, '127.0.0.1')
    socket.write(
      `POST /2015-03-31/functions/orphan/invocations HTTP/1.1\r\nHost: kiln\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    return socket
  })
  await waitUntil(async () => (await health(kiln)).concurrency === 2, { what: 'both in flight' })
  for (const socket of sockets) socket.destroy()
  await sleep(300)
  assert.equal((await health(kiln)).concurrency, 2)
  const { refusals } = await invokeMany(kiln.lambda, 'orphan', 1)
  assertReason(refusals, 'ReservedFunctionConcurrentInvocationLimitExceeded')
  await unitsAreBack(kiln)
  assert.equal((await invoke(kiln.lambda, 'orphan')).functionError, undefined)
  assert.equal((await health(kiln)).environments, 2)
})
