// Runtimes that break the rules and functions that break down: what the Runtime API says to the one, what the caller and
// the log get of the other, and that the next invoke is fine.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createFunction, invoke, IS_ROOT, nodeZip, pythonZip, startKiln, zip } from '../lib/kiln.mjs'
import { eventsOf } from '../lib/function_logs.mjs'
import { createProgram, createPython, invokeToEnd, PYTHON, python } from '../lib/programs.mjs'

let kiln
before(async () => (kiln = await startKiln()))
after(() => kiln.stop())

const exitError = (how) => new RegExp(`^RequestId: [0-9a-f-]{36} Error: Runtime exited with error: ${how}$`)

async function fails(name, event, type, message) {
  const answer = await invokeToEnd(kiln.lambda, name, event)
  assert.equal(answer.functionError, 'Unhandled', answer.text)
  assert.equal(answer.payload.errorType, type, answer.text)
  if (message instanceof RegExp) assert.match(answer.payload.errorMessage, message)
  else assert.equal(answer.payload.errorMessage, message)
  return answer
}

// --- a runtime that does not keep to the Runtime API ---

test('a runtime out of turn is told so by status code, and its invocation is not disturbed', async () => {
  await createProgram(kiln.lambda, 'stubborn', 'stubborn', { Timeout: 5 })
  const did = async (what) => (await invokeToEnd(kiln.lambda, 'stubborn', { do: what })).payload
  const transition = { errorMessage: 'State transition is not allowed', errorType: 'InvalidStateTransition' }
  const unknown = { errorMessage: 'Invalid request ID', errorType: 'InvalidRequestID' }
  assert.deepEqual(await did('other'), [['other', 400, unknown]])
  const [[, earlyStatus, early]] = await did('early')
  assert.deepEqual([earlyStatus, early.errorType], [403, transition.errorType])
  const [[, initStatus, init]] = await did('init')
  assert.deepEqual([initStatus, init.errorType], [403, transition.errorType])
  for (const what of ['twice', 'error']) {
    assert.deepEqual(await did(what), [])
    const [[name, status, body]] = await did('last')
    assert.equal(name, what)
    assert.ok([400, 403].includes(status), `${status}`)
    assert.ok([transition.errorType, unknown.errorType].includes(body.errorType), JSON.stringify(body))
  }
  await fails('stubborn', { do: 'mode' }, 'Runtime.InvalidResponseModeHeader', /./)
  assert.deepEqual((await did('last'))[0].slice(0, 2), ['mode', 400])
})

test('an answer that breaks off is an error, whoever is to blame, and never half a payload', async () => {
  await createProgram(kiln.lambda, 'short', 'stubborn', { Timeout: 5 })
  const answer = await invokeToEnd(kiln.lambda, 'short', { do: 'short' })
  assert.equal(answer.functionError, 'Unhandled')
  assert.match(answer.payload.errorType, /^Runtime\.(ExitError|TruncatedResponse)$/)
  assert.deepEqual((await invokeToEnd(kiln.lambda, 'short', { do: 'last' })).payload, [])
})

test('a runtime that never asks for its event, or for the next one, ends with the timeout', async () => {
  await createProgram(kiln.lambda, 'silent', 'stubborn', { Timeout: 1 })
  await fails('silent', { do: 'silent' }, 'Sandbox.Timedout', /^RequestId: [0-9a-f-]{36} Error: Task timed out after 1\.00 seconds$/)
  assert.deepEqual((await invokeToEnd(kiln.lambda, 'silent', { do: 'last' })).payload, [])
  const script = `#!/bin/sh
api="http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation"
curl -sS -D /tmp/headers -o /dev/null "$api/next"
id=$(tr -d '\\r' </tmp/headers | sed -n 's/^lambda-runtime-aws-request-id: //Ip')
curl -sS -o /dev/null -d '"answered"' "$api/$id/response"
sleep 600
`
  await createFunction(kiln.lambda, { FunctionName: 'once', Runtime: 'provided.al2023', Timeout: 1, Code: { ZipFile: zip({ bootstrap: script }) } })
  for (let i = 0; i < 2; i++) assert.equal((await invoke(kiln.lambda, 'once')).payload, 'answered')
  const events = await eventsOf(kiln, '/aws/lambda/once', (all) => all.filter((event) => event.startsWith('REPORT ')).length >= 2)
  assert.ok(events.some((event) => /^REPORT .*\tStatus: timeout\n$/.test(event)), events.join(''))
})

// --- functions that break down ---

test('a response over the limit is refused, and the next one passes', async () => {
  await createPython(kiln.lambda, 'large', { MemorySize: 1024 })
  const refusal = 'Response payload size exceeded maximum allowed payload size (6291556 bytes).'
  await fails('large', { code: 'result = "a" * 7000000' }, 'Function.ResponseSizeTooLarge', refusal)
  await fails('large', { code: `result = "a" * ${6291556 - 1}` }, 'Function.ResponseSizeTooLarge', refusal)
  assert.equal((await python(kiln.lambda, 'large', `result = "a" * ${6291556 - 2}`)).length, 6291556 - 2)
  await createFunction(kiln.lambda, { FunctionName: 'large-node', Runtime: 'nodejs20.x', MemorySize: 1024, Timeout: 20, Code: { ZipFile: nodeZip('export const handler = async ({ n }) => "a".repeat(n)') } })
  await fails('large-node', { n: 7_000_000 }, 'Function.ResponseSizeTooLarge', refusal)
  assert.equal((await invoke(kiln.lambda, 'large-node', { n: 3 })).payload, 'aaa')
})

test('too much memory: killed, said in the report, and the next invoke is fine', { skip: !IS_ROOT && 'needs the memory controller' }, async () => {
  await createPython(kiln.lambda, 'hungry')
  const { log } = await fails('hungry', { code: 'held = bytearray(400 << 20)' }, 'Runtime.ExitError', exitError('signal: killed'))
  assert.match(log, /\tMemory Size: 128 MB\tMax Memory Used: 128 MB\t(Init Duration: \S+ ms\t)?Status: error\tError Type: Runtime\.OutOfMemory\n$/)
  assert.equal(await python(kiln.lambda, 'hungry', 'result = 1'), 1)
})

test('signals and exits, of Python and Node, in the handler and in Init', async () => {
  await createPython(kiln.lambda, 'dying')
  for (const [code, how] of [
    ['import ctypes; ctypes.string_at(0)', 'signal: segmentation fault'],
    ['os.kill(os.getpid(), signal.SIGABRT)', 'signal: aborted'],
    ['os._exit(255)', 'exit status 255'],
    ['sys.exit("words")', 'exit status 1'],
    ['raise SystemExit(3)', 'exit status 3'],
    ['raise KeyboardInterrupt', '(signal: interrupt|exit status \\d+)'],
  ]) {
    await fails('dying', { code }, 'Runtime.ExitError', exitError(how))
  }
  await fails('dying', { code: 'sys.exit(0)' }, 'Runtime.ExitError', /Error: Runtime exited without providing a reason$/)
  for (const [name, source, how] of [
    ['init-segfault', 'import ctypes; ctypes.string_at(0)', 'signal: segmentation fault'],
    ['init-exit', 'import sys; sys.exit(9)', 'exit status 9'],
  ]) {
    await createFunction(kiln.lambda, { FunctionName: name, Runtime: PYTHON, Timeout: 30, Code: { ZipFile: pythonZip(source) } })
    await fails(name, {}, 'Runtime.ExitError', exitError(how))
  }
  await createFunction(kiln.lambda, { FunctionName: 'init-node', Runtime: 'nodejs20.x', Timeout: 30, Code: { ZipFile: nodeZip('process.exit(4)') } })
  await fails('init-node', {}, 'Runtime.ExitError', exitError('exit status 4'))
})

test('deep recursion, a full /tmp and no descriptors left are the function\'s own exceptions', async () => {
  await createPython(kiln.lambda, 'limits', { MemorySize: 1024, Timeout: 60 })
  await fails('limits', { code: 'def f(): f()\nf()' }, 'RecursionError', /^maximum recursion depth exceeded/)
  await fails('limits', { code: 'open("/tmp/full", "wb").write(bytes(513 << 20))' }, 'OSError', /No space left on device/)
  await fails('limits', { code: 'held = [open("/dev/null") for i in range(2000)]' }, 'OSError', /Too many open files/)
  assert.equal(await python(kiln.lambda, 'limits', 'os.unlink("/tmp/full"); result = "fine"'), 'fine')
})
