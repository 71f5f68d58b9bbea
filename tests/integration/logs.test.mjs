// Logs of functions: the files under DATA/logs, the exact lines of the service, the tail, and output of every kind.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { InvokeCommand } from '@aws-sdk/client-lambda'
import { invoke, IS_ROOT, startKiln, waitUntil } from '../lib/kiln.mjs'
import { usageOf } from '../lib/processes.mjs'
import { createPython, invokeToEnd, python } from '../lib/programs.mjs'

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

/** The records of one log file: { time, message } each (see src/worker/log_record.h). */
function records(bytes) {
  const found = []
  for (let at = 0; at < bytes.length; ) {
    const header = bytes.subarray(at, at + 48).toString('latin1').match(/^(\d+) (\d+) /)
    if (!header && bytes.length - at < 48) break
    assert.ok(header, `no record at byte ${at}`)
    const start = at + header[0].length
    const end = start + Number(header[2])
    if (end > bytes.length) break // still being written
    const message = bytes.subarray(start, end)
    found.push({ time: Number(header[1]), message })
    at = end + (message.at(-1) === 10 ? 0 : 1)
  }
  return found
}

/** Every log stream of a function: { name, records }. */
function streams(name) {
  const folder = join(kiln.dataDir, 'logs', `~aws~lambda~${name}`)
  let files
  try {
    files = readdirSync(folder)
  } catch {
    return []
  }
  return files.map((file) => ({ name: file, records: records(readFileSync(join(folder, file))) }))
}

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
