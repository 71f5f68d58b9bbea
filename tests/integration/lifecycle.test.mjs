// The life of environments as callers see it: reuse, Init and its failures, ends of every kind, and the managed runtimes'
// errors from the handler to the caller.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { UpdateFunctionConfigurationCommand, waitUntilFunctionUpdatedV2 } from '@aws-sdk/client-lambda'
import { logHas } from '../lib/function_logs.mjs'
import { createFunction, invoke, nodeZip, pythonZip, sleep, startKiln, waitUntil, zip } from '../lib/kiln.mjs'
import { createProbe } from '../lib/probe.mjs'
import { usageOf } from '../lib/processes.mjs'
import { createProgram, createPython, invokeToEnd, PYTHON, python } from '../lib/programs.mjs'

let kiln
before(async () => (kiln = await startKiln()))
after(() => kiln.stop())

const health = async (daemon = kiln) => (await daemon.fetch('/_kiln/health')).json()
const NODE = 'nodejs20.x'

/** A function of a fresh name out of one source text. */
let names = 0
async function create(runtime, source, parameters = {}) {
  const name = `f${names++}`
  const files = runtime.startsWith('node') ? nodeZip(source) : pythonZip(source)
  await createFunction(kiln.lambda, { FunctionName: name, Runtime: runtime, Timeout: 10, Code: { ZipFile: files }, ...parameters })
  return name
}

/** Every call fails alike: that error, and that message. */
async function failsEachTime(name, type, message, times = 2) {
  for (let i = 0; i < times; i++) {
    const { functionError, payload, text } = await invokeToEnd(kiln.lambda, name, {})
    assert.equal(functionError, 'Unhandled', text)
    assert.equal(payload.errorType, type, text)
    if (message instanceof RegExp) assert.match(payload.errorMessage, message)
    else assert.equal(payload.errorMessage, message)
  }
}

// --- Init and reuse ---

test('an environment is used again, and keeps its memory and /tmp', async () => {
  await createPython(kiln.lambda, 'warm')
  for (let i = 1; i <= 5; i++) {
    const seen = await python(kiln.lambda, 'warm', `
open("/tmp/log", "a").write("x")
result = [STATE["invokes"], len(read("/tmp/log")), os.getpid()]`)
    assert.deepEqual(seen.slice(0, 2), [i, i])
  }
})

test('after a crash memory is new, and /tmp is as it was', async () => {
  await createPython(kiln.lambda, 'crashing')
  await python(kiln.lambda, 'crashing', 'open("/tmp/kept", "w").write("kept")')
  const crash = await invokeToEnd(kiln.lambda, 'crashing', { code: 'os._exit(7)' })
  assert.equal(crash.payload.errorType, 'Runtime.ExitError')
  assert.match(crash.payload.errorMessage, /Error: Runtime exited with error: exit status 7$/)
  assert.deepEqual(await python(kiln.lambda, 'crashing', 'result = [STATE["invokes"], read("/tmp/kept")]'), [1, 'kept'])
})

test('an Init that fails is tried again for each call, and may succeed then', async () => {
  const name = await create(PYTHON, `
import os
with open("/tmp/inits", "a") as file: file.write("x")
if os.path.getsize("/tmp/inits") < 6: raise RuntimeError("not yet")
def handler(event, context): return os.path.getsize("/tmp/inits")`)
  let failures = 0
  let answer
  for (answer = await invokeToEnd(kiln.lambda, name, {}); answer.functionError; answer = await invokeToEnd(kiln.lambda, name, {})) {
    assert.equal(answer.payload.errorType, 'RuntimeError', answer.text)
    assert.equal(answer.payload.errorMessage, 'not yet')
    assert.ok(++failures < 10)
  }
  assert.ok(failures >= 1)
})

test('an Init of more than 10 s is begun again within the invoke, under the function\'s timeout', async () => {
  const name = await create(
    PYTHON,
    `
import os, time
first = not os.path.exists("/tmp/begun")
open("/tmp/begun", "w").close()
if first: time.sleep(3600)
def handler(event, context): return "second init"`,
    { Timeout: 20 },
  )
  const answer = await invokeToEnd(kiln.lambda, name, {})
  assert.equal(answer.payload, 'second init', answer.text)
  const text = await logHas(kiln, name, 'INIT_REPORT')
  assert.match(text, /INIT_REPORT Init Duration: \d+\.\d\d ms\tPhase: init\tStatus: timeout\n/)
  const never = await create(PYTHON, 'import time\ntime.sleep(3600)\ndef handler(event, context): pass', { Timeout: 2 })
  await failsEachTime(never, 'Sandbox.Timedout', /^RequestId: [0-9a-f-]{36} Error: Task timed out after 2\.00 seconds$/, 1)
})

test('a runtime that ends while idle is noticed: the next invoke is fine', async () => {
  await createPython(kiln.lambda, 'leaving')
  for (let round = 0; round < 3; round++) {
    await python(kiln.lambda, 'leaving', 'threading.Timer(0.02, lambda: os._exit(1)).start(); result = 1')
    await sleep(400)
    assert.equal(await python(kiln.lambda, 'leaving', 'result = STATE["invokes"]'), 1)
  }
})

test('new environment variables mean a new environment', async () => {
  await createPython(kiln.lambda, 'varied', { Environment: { Variables: { COLOUR: 'blue' } } })
  const look = 'result = [os.environ["COLOUR"], STATE["invokes"]]'
  assert.deepEqual(await python(kiln.lambda, 'varied', look), ['blue', 1])
  assert.deepEqual(await python(kiln.lambda, 'varied', look), ['blue', 2])
  const change = { FunctionName: 'varied', Environment: { Variables: { COLOUR: 'orange' } } }
  await kiln.lambda.send(new UpdateFunctionConfigurationCommand(change))
  await waitUntilFunctionUpdatedV2({ client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { FunctionName: 'varied' })
  assert.deepEqual(await python(kiln.lambda, 'varied', look), ['orange', 1])
})

test('idle environments are reclaimed after --idle-timeout', async (t) => {
  const other = await startKiln({ args: ['--idle-timeout', '1'] })
  t.after(() => other.stop())
  await createProbe(other.lambda, 'probe')
  for (let round = 0; round < 2; round++) {
    assert.equal((await invoke(other.lambda, 'probe')).payload.count, 1)
    await waitUntil(async () => (await health(other)).environments === 0, { what: 'the environment being reclaimed' })
  }
})

test('late answers of timed-out invokes never reach the next caller', async () => {
  // A function that starts at once: what a reset costs Python may, on a busy machine, be more than the timeout itself.
  await createProbe(kiln.lambda, 'late', { Timeout: 1 })
  let late = 0
  for (let round = 1; round <= 50; round++) {
    // Answers from 25 ms before the time is up to 25 ms after.
    const slow = await invoke(kiln.lambda, 'late', { id: 1000 + round, sleep_ms: 975 + round })
    if (slow.functionError) {
      assert.equal(slow.payload.errorType, 'Sandbox.Timedout')
      late++
    } else {
      assert.equal(slow.payload.id, 1000 + round)
    }
    const next = await invoke(kiln.lambda, 'late', { id: 2000 + round })
    assert.equal(next.payload.id, 2000 + round, next.text)
  }
  assert.ok(late > 0)
})

test('10,000 invokes one after the other leak nothing in the daemon', async (t) => {
  const other = await startKiln({ args: ['--idle-timeout', '1'] })
  t.after(() => other.stop())
  await createProbe(other.lambda, 'long')
  const some = async (count) => {
    for (let i = 0; i < count; i++) assert.equal((await invoke(other.lambda, 'long')).functionError, undefined)
    // An invoke close behind another may have got an environment of its own: only without any can one compare.
    await waitUntil(async () => (await health(other)).environments === 0, { what: 'the environments being reclaimed' })
    return usageOf(other.pid)
  }
  const early = await some(1000)
  const late = await some(9000)
  assert.ok(late.descriptors <= early.descriptors + 2, `${early.descriptors} descriptors became ${late.descriptors}`)
  const grown = late.residentKiB - early.residentKiB
  assert.ok(grown < 2048, `the daemon grew by ${grown} KiB`)
  assert.equal((await health(other)).concurrency, 0)
})

test('a thousand processes on a small share of CPU are ended promptly', async () => {
  const other = await startKiln()
  await createProgram(other.lambda, 'crowd', 'intruder', { MemorySize: 128, Timeout: 5 })
  const answer = await invoke(other.lambda, 'crowd', { try: 'forks', hang: 1 })
  assert.equal(answer.payload.errorType, 'Sandbox.Timedout')
  await other.stop() // throws when it takes longer than the harness waits
})

// --- what is not a runtime ---

test('no bootstrap, one that may not be executed, and one that is no program: Runtime.InvalidEntrypoint', async () => {
  const cases = [
    ['none', { 'other.txt': 'x' }, /^RequestId: [0-9a-f-]{36} Error: Couldn't find valid bootstrap\(s\): \[\/var\/task\/bootstrap \/opt\/bootstrap\]$/],
    ['mode 0644', { bootstrap: { content: '#!/bin/sh\n', mode: 0o644 } }, /fork\/exec \/var\/task\/bootstrap: permission denied$/],
    ['interpreter', { bootstrap: '#!/nonexistent/sh\n' }, /fork\/exec \/var\/task\/bootstrap: no such file or directory$/],
    ['wrong binary', { bootstrap: Buffer.from('\x7fELF\x02\x01\x01 not for this machine') }, /fork\/exec \/var\/task\/bootstrap: exec format error$/],
    ['empty', { bootstrap: '' }, /fork\/exec \/var\/task\/bootstrap: exec format error$/],
  ]
  for (const [what, files, message] of cases) {
    const name = `entry-${what.replaceAll(/\W/g, '-')}`
    await createFunction(kiln.lambda, { FunctionName: name, Runtime: 'provided.al2023', Handler: 'x', Timeout: 60, Code: { ZipFile: zip(files) } })
    await failsEachTime(name, 'Runtime.InvalidEntrypoint', message)
  }
})

test('a bootstrap that ends at once: Runtime.ExitError', async () => {
  for (const [script, message] of [
    ['exit 3', /Error: Runtime exited with error: exit status 3$/],
    ['exit 0', /Error: Runtime exited without providing a reason$/],
    ['kill -9 $$', /Error: Runtime exited with error: signal: killed$/],
  ]) {
    const name = `ends-${names++}`
    await createFunction(kiln.lambda, { FunctionName: name, Runtime: 'provided.al2023', Handler: 'x', Code: { ZipFile: zip({ bootstrap: `#!/bin/sh\n${script}\n` }) } })
    await failsEachTime(name, 'Runtime.ExitError', message)
  }
})

// --- Python ---

test('Python: a version that is not installed runs on the newest, and the log says so', async () => {
  const name = await create('python3.8', 'import sys\ndef handler(event, context): return "%d.%d" % sys.version_info[:2]').catch((error) => error)
  // Where creating with an old runtime is refused, the newest known one stands in for "not installed".
  const other = name instanceof Error ? await create('python3.14', 'import sys\ndef handler(event, context): return "%d.%d" % sys.version_info[:2]') : name
  const answer = await invokeToEnd(kiln.lambda, other, {})
  assert.equal(`python${answer.payload}`, PYTHON)
  const text = await logHas(kiln, other, 'Kiln: runtime')
  assert.match(text, /Kiln: runtime python3\.\d+ is not installed on this host; running with \/usr\/\S+ \(installed: /)
})

test('Python: errors of Init', async () => {
  const good = 'def handler(event, context): return 1'
  const handler = await create(PYTHON, good, { Handler: 'index.missing' })
  await failsEachTime(handler, 'Runtime.HandlerNotFound', "Handler 'missing' missing on module 'index'")
  const module = await create(PYTHON, good, { Handler: 'other.handler' })
  await failsEachTime(module, 'Runtime.ImportModuleError', "Unable to import module 'other': No module named 'other'")
  const imported = await create(PYTHON, 'import no_such_module\n' + good)
  await failsEachTime(imported, 'Runtime.ImportModuleError', "Unable to import module 'index': No module named 'no_such_module'")
  const syntax = await create(PYTHON, 'def handler(event, context) return 1')
  await failsEachTime(syntax, 'Runtime.UserCodeSyntaxError', /^Syntax error in module 'index': /)
  const malformed = await create(PYTHON, good, { Handler: 'handler' })
  await failsEachTime(malformed, 'Runtime.MalformedHandlerName', /^Bad handler 'handler': /)
})

test('Python: errors of an invoke', async () => {
  const name = await create(PYTHON, `
import sys, os
class Own(Exception): pass
def handler(event, context):
    kind = event["kind"]
    if kind == "raise": raise Own("with \\u00e9 and \\"quotes\\"")
    if kind == "set": return {1, 2}
    if kind == "exit": sys.exit(4)
    if kind == "nan": return float("nan")
    return kind`)
  const ask = (kind) => invokeToEnd(kiln.lambda, name, { kind })
  const raised = await ask('raise')
  assert.equal(raised.functionError, 'Unhandled')
  assert.equal(raised.payload.errorType, 'Own')
  assert.equal(raised.payload.errorMessage, 'with é and "quotes"')
  assert.equal(raised.payload.stackTrace.length, 1)
  assert.match(raised.payload.stackTrace[0], /^ {2}File "\/var\/task\/index\.py", line 6, in handler\n {4}if kind == "raise": raise Own/)
  const set = await ask('set')
  assert.equal(set.payload.errorType, 'Runtime.MarshalError')
  assert.match(set.payload.errorMessage, /^Unable to marshal response: Object of type set is not JSON serializable$/)
  const exit = await ask('exit')
  assert.equal(exit.payload.errorType, 'Runtime.ExitError')
  assert.match(exit.payload.errorMessage, /Error: Runtime exited with error: exit status 4$/)
  assert.equal((await ask('fine')).payload, 'fine')
})

// --- Node.js ---

test('Node: errors of Init', async () => {
  const good = 'export const handler = async () => 1'
  const handler = await create(NODE, good, { Handler: 'index.missing' })
  await failsEachTime(handler, 'Runtime.HandlerNotFound', 'index.missing is undefined or not exported')
  const module = await create(NODE, good, { Handler: 'other.handler' })
  await failsEachTime(module, 'Runtime.ImportModuleError', /^Error: Cannot find module 'other'/)
  const syntax = await create(NODE, 'export const handler = async () => {')
  await failsEachTime(syntax, 'Runtime.UserCodeSyntaxError', /^SyntaxError: /)
  const thrown = await create(NODE, `throw new RangeError('at init')\n${good}`)
  await failsEachTime(thrown, 'RangeError', 'at init')
})

test('Node: errors of an invoke', async () => {
  const name = await create(NODE, `
class Own extends Error { constructor(message) { super(message); this.name = 'Own' } }
export const handler = async ({ kind }) => {
  if (kind === 'throw') throw new Own('thrown')
  if (kind === 'circular') { const a = {}; a.a = a; return a }
  if (kind === 'reject') { Promise.reject(new Own('unhandled')); await new Promise((done) => setTimeout(done, 5000)) }
  if (kind === 'exit') process.exit(5)
  return kind
}`)
  const ask = (kind) => invokeToEnd(kiln.lambda, name, { kind })
  const thrown = await ask('throw')
  assert.equal(thrown.functionError, 'Unhandled')
  assert.equal(thrown.payload.errorType, 'Own')
  assert.equal(thrown.payload.errorMessage, 'thrown')
  assert.equal(thrown.payload.trace[0], 'Own: thrown')
  assert.match(thrown.payload.trace[1], /^ {4}at .*index\.mjs:4:/)
  const circular = await ask('circular')
  assert.equal(circular.functionError, 'Unhandled')
  assert.equal(circular.payload.errorMessage, 'Unable to stringify response body')
  const rejected = await ask('reject')
  assert.equal(rejected.payload.errorType, 'Runtime.UnhandledPromiseRejection')
  assert.match(rejected.payload.errorMessage, /unhandled/)
  const exit = await ask('exit')
  assert.equal(exit.payload.errorType, 'Runtime.ExitError')
  assert.match(exit.payload.errorMessage, /Error: Runtime exited with error: exit status 5$/)
  assert.equal((await ask('fine')).payload, 'fine')
})
