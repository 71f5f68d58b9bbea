// Logs of functions: the files under DATA/logs, the exact lines of the service, the tail, and output of every kind.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { InvokeCommand } from '@aws-sdk/client-lambda'
import { createFunction, invoke, IS_ROOT, nodeZip, pythonZip, startKiln, waitUntil, zip } from '../lib/kiln.mjs'
import { eventsOf, streams as streamsOf } from '../lib/function_logs.mjs'
import { usageOf } from '../lib/processes.mjs'
import { createPython, invokeToEnd, PYTHON, python } from '../lib/programs.mjs'

const ID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
const report = (init) =>
  new RegExp(
    `^START RequestId: (${ID}) Version: \\$LATEST\nEND RequestId: \\1\n` +
      'REPORT RequestId: \\1\tDuration: \\d+\\.\\d\\d ms\tBilled Duration: \\d+ ms\tMemory Size: 128 MB\t' +
      `Max Memory Used: \\d+ MB\t${init}\n$`,
  )
const COLD = report('Init Duration: \\d+\\.\\d\\d ms\t')
const WARM = report('')

let kiln
before(async () => (kiln = await startKiln()))
after(() => kiln.stop())

const streams = (name) => streamsOf(kiln, `/aws/lambda/${name}`)

/** Waits until the file says that the invocation has ended, and gives all of it as one text. */
async function logOf(name, reports = 1) {
  const text = () => streams(name).flatMap((stream) => stream.records.map(({ message }) => message.toString()))
  return waitUntil(() => (text().filter((line) => line.startsWith('REPORT ')).length >= reports ? text().join('') : undefined), {
    what: `${reports} REPORT lines of ${name}`,
  })
}

test('START, END and REPORT, cold and warm', async () => {
  await createPython(kiln.lambda, 'lines')
  const cold = await invokeToEnd(kiln.lambda, 'lines', { code: 'result = 1' })
  assert.match(cold.log, COLD)
  const warm = await invokeToEnd(kiln.lambda, 'lines', { code: 'result = 2' })
  assert.match(warm.log, WARM)
  const [, id, duration, billed] = warm.log.match(/REPORT RequestId: (\S+)\tDuration: (\S+) ms\tBilled Duration: (\d+) ms/)
  assert.equal(Number(billed), Math.ceil(Number(duration)))
  assert.notEqual(id, cold.log.match(COLD)[1])
})

test('the file of the environment holds what the tails said, with times', async () => {
  const begun = Date.now() - 1000
  await createPython(kiln.lambda, 'filed')
  const tails = []
  for (const word of ['one', 'two']) {
    const code = `print("out ${word}"); print("err ${word}", file=sys.stderr); result = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]`
    const answer = await invokeToEnd(kiln.lambda, 'filed', { code })
    tails.push(answer.log)
    assert.match(answer.log, new RegExp(`^START .*\nout ${word}\nerr ${word}\nEND .*\nREPORT .*\n$`))
    assert.match(answer.payload, /^\d{4}\/\d\d\/\d\d\/\[\$LATEST\][0-9a-f]{32}$/)
  }
  const text = await logOf('filed', 2)
  assert.ok(text.endsWith(tails.join('')), text)
  const [stream, ...others] = streams('filed')
  assert.deepEqual(others, [])
  const name = await python(kiln.lambda, 'filed', 'result = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]')
  assert.equal(stream.name, `${name.replaceAll('/', '~')}.log`)
  for (const [i, { time }] of stream.records.entries()) {
    assert.ok(time >= begun && time <= Date.now())
    assert.ok(i === 0 || time >= stream.records[i - 1].time)
  }
})

test('the tail is the last 4,096 bytes and ends with REPORT', async () => {
  await createPython(kiln.lambda, 'chatty', { MemorySize: 1024 })
  const code = 'for i in range(1024): print(str(i).rjust(99, "."))'
  const answer = await kiln.lambda.send(
    new InvokeCommand({ FunctionName: 'chatty', LogType: 'Tail', Payload: Buffer.from(JSON.stringify({ code })) }),
  )
  const tail = Buffer.from(answer.LogResult, 'base64')
  assert.equal(tail.length, 4096)
  const text = await logOf('chatty')
  assert.equal(Buffer.byteLength(text) > 100 * 1024, true)
  assert.ok(text.endsWith(tail.toString()))
  assert.match(tail.toString(), /\n\.+1023\nEND RequestId: \S+\nREPORT RequestId: .*\n$/)
  for (let i = 0; i < 1024; i++) assert.ok(text.includes(`${String(i).padStart(99, '.')}\n`), `line ${i} is missing`)
})

test('no tail without LogType Tail', async () => {
  const answer = await invoke(kiln.lambda, 'lines', { code: 'print("x")' })
  assert.equal(answer.log, undefined)
  assert.equal((await invoke(kiln.lambda, 'lines', { code: '' }, { LogType: 'None' })).log, undefined)
})

test('the last line of output without a newline is ended before END', async () => {
  await createPython(kiln.lambda, 'endless')
  const answer = await invokeToEnd(kiln.lambda, 'endless', { code: 'sys.stdout.write("no newline")' })
  assert.match(answer.log, /^START .*\nno newline\nEND /)
})

test('output that is no text does not break the call, and is kept byte for byte', async () => {
  await createPython(kiln.lambda, 'binary', { MemorySize: 1024 })
  const cases = [
    ['NUL', 'b"a\\0b\\0\\0c\\n"', Buffer.from('a\0b\0\0c\n')],
    ['invalid UTF-8', 'b"\\xff\\xfe\\xc3\\x28 \\xed\\xa0\\x80\\n"', Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0x20, 0xed, 0xa0, 0x80, 10])],
    ['control characters', 'b"\\x1b[31m\\r\\x07\\x08\\n"', Buffer.from('\x1b[31m\r\x07\x08\n')],
    ['what looks like a record', 'b"1767225600123 46 START RequestId: x\\n"', Buffer.from('1767225600123 46 START RequestId: x\n')],
  ]
  for (const [what, literal] of cases) {
    const answer = await invokeToEnd(kiln.lambda, 'binary', { code: `os.write(1, ${literal}); result = "fine"` })
    assert.equal(answer.payload, 'fine', what)
    assert.match(answer.log, /END RequestId: \S+\nREPORT .*\n$/, what)
  }
  await logOf('binary', cases.length)
  const messages = streams('binary').flatMap((stream) => stream.records.map(({ message }) => message))
  for (const [what, , bytes] of cases) assert.ok(messages.some((message) => message.equals(bytes)), what)
})

test('a flood without any newline is cut, loses nothing, and does not break the call', async () => {
  await createPython(kiln.lambda, 'stream', { MemorySize: 1769, Timeout: 60 })
  const code = `
block = b"0123456789abcdef" * 4096
for i in range(64):
    rest = block
    while rest: rest = rest[os.write(1, rest):]
result = "fine"`
  const answer = await invokeToEnd(kiln.lambda, 'stream', { code })
  assert.equal(answer.payload, 'fine')
  assert.match(answer.log, /[0-9a-f]\nEND RequestId: \S+\nREPORT .*\n$/)
  await logOf('stream')
  const output = streams('stream')
    .flatMap((stream) => stream.records.map(({ message }) => message))
    .filter((message) => /^[0-9a-f\n]+$/.test(message.toString('latin1')))
  assert.ok(output.every((message) => message.length <= 256 * 1024))
  const flood = Buffer.concat(output).toString('latin1').replaceAll('\n', '')
  assert.equal(flood, '0123456789abcdef'.repeat(4096 * 64))
})

test('the daemon stays small, and others are served, while a function prints 200 MB', async () => {
  await createPython(kiln.lambda, 'flood', { MemorySize: 1769, Timeout: 120 })
  await createPython(kiln.lambda, 'other')
  await invoke(kiln.lambda, 'other', { code: 'result = 1' })
  let largest = 0
  let served = 0
  let done = false
  const code = `
line = (b"x" * 99 + b"\\n") * 1024
for i in range(2048):
    rest = line
    while rest: rest = rest[os.write(1, rest):]
result = "printed"`
  const flood = invokeToEnd(kiln.lambda, 'flood', { code }).finally(() => (done = true))
  while (!done) {
    assert.equal((await invoke(kiln.lambda, 'other', { code: 'result = 1' })).payload, 1)
    assert.equal((await kiln.fetch('/_kiln/health')).status, 200)
    largest = Math.max(largest, usageOf(kiln.pid).residentKiB)
    served++
  }
  const answer = await flood
  assert.equal(answer.payload, 'printed', answer.text)
  assert.match(answer.log, /x\nEND RequestId: \S+\nREPORT .*\n$/)
  assert.ok(served > 0)
  assert.ok(largest < 64 * 1024, `the daemon took ${largest} KiB`)
})

// --- one event a message ---

test('a message of several lines is one event, from Python and from Node', async () => {
  await createPython(kiln.lambda, 'lines-python')
  await invokeToEnd(kiln.lambda, 'lines-python', { code: 'import logging; print("printed\\nlines"); logging.error("a\\nb"); raise ValueError("no good")' })
  const python = await eventsOf(kiln, '/aws/lambda/lines-python', (events) => events.some((event) => event.startsWith('REPORT')))
  const [, , first, second, logged, error, end] = python
  assert.deepEqual([first, second], ['printed\n', 'lines\n'])
  assert.match(logged, /^\[ERROR\]\t\S+Z\t[0-9a-f-]{36}\ta\nb\n$/)
  // As recorded: no-break spaces, and no newline at the end.
  assert.match(error, /^\[ERROR\] ValueError: no good\nTraceback \(most recent call last\):\n\u00a0\u00a0File "[^]*[^\n]$/)
  assert.match(end, /^END /)

  await createFunction(kiln.lambda, { FunctionName: 'lines-node', Runtime: 'nodejs20.x', Code: { ZipFile: nodeZip("export const handler = async () => { console.log('a\\nb'); console.info({ a: 'x'.repeat(80), b: ['y'.repeat(80)] }); return Object.keys(process.env) }") } })
  const answer = await invokeToEnd(kiln.lambda, 'lines-node', {})
  assert.ok(!answer.payload.includes('_LAMBDA_TELEMETRY_LOG_FD'))
  const node = await eventsOf(kiln, '/aws/lambda/lines-node', (events) => events.some((event) => event.startsWith('REPORT')))
  assert.match(node[2], /^\S+Z\t[0-9a-f-]{36}\tINFO\ta\nb\n$/)
  assert.match(node[3], /\tINFO\t\{\n  a: 'x+',\n  b: \[\n    'y+'\n  \]\n\}\n$/)
  assert.match(node[4], /^END /)
})

// --- the JSON format ---

const NOW = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const isReport = (event) => event.includes('"platform.report"')

/** The events of a group in the JSON format, parsed where they are JSON, once there are so many reports. */
async function jsonEvents(group, reports = 1) {
  const texts = await eventsOf(kiln, group, (events) => events.filter(isReport).length >= reports)
  return texts.map((text) => (text.startsWith('{') ? JSON.parse(text) : text))
}

test('JSON format: the events of the service with their records, from the level on that is asked for', async () => {
  const LoggingConfig = { LogFormat: 'JSON', SystemLogLevel: 'DEBUG', LogGroup: '/own/group' }
  await createPython(kiln.lambda, 'json-system', { LoggingConfig, Timeout: 1 })
  await invokeToEnd(kiln.lambda, 'json-system', { code: 'result = 1' })
  const late = await invokeToEnd(kiln.lambda, 'json-system', { code: 'time.sleep(60)' })
  assert.equal(late.payload.errorType, 'Sandbox.Timedout')
  const events = await jsonEvents('/own/group', 2)
  for (const event of events) assert.match(event.time, NOW)
  assert.deepEqual(events.map(({ type }) => type), [
    'platform.initStart', 'platform.initRuntimeDone', 'platform.initReport',
    'platform.start', 'platform.runtimeDone', 'platform.report',
    'platform.start', 'platform.runtimeDone', 'platform.report',
  ])
  const [initStart, initDone, initReport, start, done, report, , lateDone, lateReport] = events.map(({ record }) => record)
  assert.match(initStart.runtimeVersionArn, /^arn:aws:lambda:us-east-1::runtime:[0-9a-f]{64}$/)
  assert.match(initStart.instanceId, /^\d{4}\/\d\d\/\d\d\/json-system\[\$LATEST\][0-9a-f]{32}$/)
  assert.deepEqual({ ...initStart, runtimeVersionArn: 0, instanceId: 0 }, {
    initializationType: 'on-demand',
    phase: 'init',
    runtimeVersion: PYTHON.replace('python', 'python:') + '.v1',
    runtimeVersionArn: 0,
    functionName: 'json-system',
    functionVersion: '$LATEST',
    instanceId: 0,
    instanceMaxMemory: 128 << 20,
  })
  assert.deepEqual(initDone, { initializationType: 'on-demand', phase: 'init', status: 'success' })
  assert.equal(initReport.metrics.durationMs, report.metrics.initDurationMs)
  const { requestId } = start
  assert.deepEqual(start, { requestId, functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:json-system', version: '$LATEST' })
  assert.deepEqual({ ...done, metrics: 0 }, { requestId, status: 'success', metrics: 0 })
  assert.equal(done.metrics.producedBytes, 1)
  assert.deepEqual(Object.keys(report), ['requestId', 'metrics', 'status'])
  assert.deepEqual(Object.keys(report.metrics), ['durationMs', 'billedDurationMs', 'memorySizeMB', 'maxMemoryUsedMB', 'initDurationMs'])
  assert.equal(report.metrics.billedDurationMs, Math.ceil(report.metrics.durationMs + report.metrics.initDurationMs))
  assert.equal(report.status, 'success')
  assert.deepEqual([lateDone.status, lateDone.metrics.producedBytes, lateReport.status], ['timeout', 0, 'timeout'])
  // Streams of a group that several functions share carry the function's name.
  assert.match(streamsOf(kiln, '/own/group')[0].name, /^\d{4}~\d\d~\d\d~json-system\[\$LATEST\][0-9a-f]{32}\.log$/)
})

test('JSON format: at INFO an invocation is a start and a report; at WARN only what failed is told', async () => {
  for (const [SystemLogLevel, expected] of [['INFO', ['platform.initStart', 'platform.start', 'platform.report']], ['WARN', []]]) {
    const group = `/level/${SystemLogLevel}`
    await createPython(kiln.lambda, `json-${SystemLogLevel}`, { LoggingConfig: { LogFormat: 'JSON', SystemLogLevel, LogGroup: group } })
    await invokeToEnd(kiln.lambda, `json-${SystemLogLevel}`, { code: 'result = 1' })
    const exit = await invokeToEnd(kiln.lambda, `json-${SystemLogLevel}`, { code: 'os._exit(3)' })
    assert.equal(exit.payload.errorType, 'Runtime.ExitError')
    const failures = (event) => event.record.status === 'error'
    const events = await jsonEvents(group, expected.length ? 2 : 1)
    assert.deepEqual(events.slice(0, expected.length).map(({ type }) => type), expected)
    assert.deepEqual(events.filter(failures).map(({ type, record }) => [type, record.errorType]), [
      ['platform.runtimeDone', 'Runtime.ExitError'],
      ['platform.report', 'Runtime.ExitError'],
    ])
    if (!expected.length) assert.ok(events.every(failures))
  }
})

test('JSON format in Python: logging, what is below the level, errors, print', async () => {
  const source = `
import logging, os
def handler(event, context):
    logging.debug("hidden")
    logging.getLogger("shop").info("n=%d \\u00e9", 7, extra={"order": {"id": 1}})
    try: 1 / 0
    except ZeroDivisionError: logging.exception("caught")
    print("plain")
    print('{"level": "debug", "msg": "hidden by the service"}')
    if event.get("raise"): raise ValueError("no good")
    return [os.environ["AWS_LAMBDA_LOG_FORMAT"], os.environ["AWS_LAMBDA_LOG_LEVEL"]]`
  await createFunction(kiln.lambda, {
    FunctionName: 'json-python',
    Runtime: PYTHON,
    LoggingConfig: { LogFormat: 'JSON', SystemLogLevel: 'WARN' },
    Code: { ZipFile: pythonZip(source) },
  })
  const answer = await invokeToEnd(kiln.lambda, 'json-python', {})
  assert.deepEqual(answer.payload, ['JSON', 'INFO'])
  const [info, caught, plain, ...others] = answer.log.trimEnd().split('\n')
  const { timestamp, requestId, ...rest } = JSON.parse(info)
  assert.match(timestamp, NOW)
  assert.match(requestId, /^[0-9a-f-]{36}$/)
  assert.deepEqual(rest, { level: 'INFO', message: 'n=7 é', logger: 'shop', order: { id: 1 } })
  const error = JSON.parse(caught)
  assert.deepEqual([error.level, error.message, error.errorType, error.errorMessage], ['ERROR', 'caught', 'ZeroDivisionError', 'division by zero'])
  assert.match(error.stackTrace[0], /File "\/var\/task\/index\.py", line 6, in handler/)
  assert.equal(error.location, '/var/task/index.py:handler:7')
  assert.equal(plain, 'plain')
  assert.deepEqual(others, [])
  const raised = await invokeToEnd(kiln.lambda, 'json-python', { raise: true })
  const last = JSON.parse(raised.log.trimEnd().split('\n').at(-1))
  assert.deepEqual([last.level, last.errorType, last.errorMessage, last.requestId], ['ERROR', 'ValueError', 'no good', raised.payload.requestId])
  assert.deepEqual(last.stackTrace, raised.payload.stackTrace)
})

test('JSON format in Node: console, what is below the level, errors', async () => {
  const source = `
export const handler = async (event) => {
  console.debug('hidden')
  console.info('hidden too')
  console.warn({ order: 1 })
  console.error('two %s', 'parts', new RangeError('bad'))
  if (event.raise) throw new TypeError('no good')
}`
  await createFunction(kiln.lambda, {
    FunctionName: 'json-node',
    Runtime: 'nodejs20.x',
    LoggingConfig: { LogFormat: 'JSON', ApplicationLogLevel: 'WARN', SystemLogLevel: 'WARN' },
    Code: { ZipFile: nodeZip(source) },
  })
  const answer = await invokeToEnd(kiln.lambda, 'json-node', { raise: true })
  const [warn, error, thrown, ...others] = answer.log.trimEnd().split('\n').map((line) => JSON.parse(line))
  assert.deepEqual(others, [])
  assert.deepEqual(Object.keys(warn), ['timestamp', 'level', 'requestId', 'message'])
  assert.deepEqual([warn.level, warn.message], ['WARN', { order: 1 }])
  assert.deepEqual([error.level, error.errorType, error.errorMessage], ['ERROR', 'RangeError', 'bad'])
  assert.match(error.message, /^two parts RangeError: bad\n/)
  assert.equal(error.stackTrace[0], 'RangeError: bad')
  assert.deepEqual([thrown.level, thrown.message.errorType, thrown.message.errorMessage], ['ERROR', 'TypeError', 'no good'])
  assert.deepEqual(thrown.message.stackTrace, answer.payload.trace)
})

test('JSON format: a custom runtime\'s lines are taken by their level', async () => {
  const script = `#!/bin/sh
api="http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation"
while :; do
    curl -sS -D /tmp/headers -o /dev/null "$api/next"
    id=$(tr -d '\\r' </tmp/headers | sed -n 's/^lambda-runtime-aws-request-id: //Ip')
    echo '{"level":"debug","n":1}'; echo '{"level":"info","n":2}'; echo text; echo '{"level":"fatal","n":3}'
    curl -sS -o /dev/null -d '"fine"' "$api/$id/response"
done
`
  const LoggingConfig = { LogFormat: 'JSON', ApplicationLogLevel: 'WARN', SystemLogLevel: 'WARN' }
  await createFunction(kiln.lambda, { FunctionName: 'json-shell', Runtime: 'provided.al2023', LoggingConfig, Code: { ZipFile: zip({ bootstrap: script }) } })
  const answer = await invokeToEnd(kiln.lambda, 'json-shell', {})
  assert.equal(answer.payload, 'fine')
  assert.equal(answer.log, '{"level":"fatal","n":3}\n')
})

test('errors and timeouts are in the log, and in the tail', async () => {
  await createPython(kiln.lambda, 'failing', { Timeout: 1 })
  const raised = await invokeToEnd(kiln.lambda, 'failing', { code: 'raise ValueError("no good")' })
  assert.match(raised.log, /^START .*\n\[ERROR\] ValueError: no good\nTraceback \(most recent call last\):/)
  assert.match(raised.log, /\nEND RequestId: \S+\nREPORT .*\n$/)
  const hung = await invokeToEnd(kiln.lambda, 'failing', { code: 'print("begun"); time.sleep(60)' })
  assert.match(
    hung.log,
    new RegExp(`^START RequestId: (${ID}) Version: \\$LATEST\nbegun\n\\S+Z \\1 Task timed out after 1\\.00 seconds\nEND RequestId: \\1\nREPORT .*\n$`),
  )
})

test('Max Memory Used grows with the function, not with /tmp', { skip: !IS_ROOT && 'needs the memory controller' }, async () => {
  await createPython(kiln.lambda, 'sized', { MemorySize: 512 })
  const used = async (code) => Number((await invokeToEnd(kiln.lambda, 'sized', { code })).log.match(/Max Memory Used: (\d+) MB/)[1])
  const small = await used('result = 1')
  assert.ok(small > 3 && small < 60, `${small} MB`)
  const large = await used('STATE["held"] = bytearray(200 << 20)')
  assert.ok(large >= 200 && large < 300, `${large} MB`)
})
