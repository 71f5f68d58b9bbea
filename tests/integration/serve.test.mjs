// The command line and the daemon as a process: options, refusals, start, signals, restart, connections.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import {
  CreateAliasCommand,
  GetAliasCommand,
  GetFunctionConcurrencyCommand,
  LambdaClient,
  ListVersionsByFunctionCommand,
  PublishVersionCommand,
  PutFunctionConcurrencyCommand,
} from '@aws-sdk/client-lambda'
import { invoke, invokeMany, IS_ROOT, runKiln, spawnKiln, startKiln, waitUntil } from '../lib/kiln.mjs'
import { createProbe } from '../lib/probe.mjs'
import { usageOf } from '../lib/processes.mjs'

const OPTIONS = [
  ...['listen', 'data-dir', 'account-id', 'region', 'concurrency', 'unreserved-minimum', 'scaling-rate', 'idle-timeout'],
  ...['auth', 'credentials', 'network', 'log-format'],
]

function folderFor(t) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-serve-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const health = async (kiln) => (await kiln.fetch('/_kiln/health')).json()

/** One line on standard error, nothing on standard output, exit 2, and no data directory made. */
async function refuses(t, args, line, { env, dataDir = join(folderFor(t), 'data') } = {}) {
  const there = existsSync(dataDir)
  const given = args.some((word) => word.startsWith('--data-dir')) ? [] : ['--data-dir', dataDir]
  const outcome = await runKiln(['serve', ...given, ...args], { env })
  assert.equal(outcome.stdout, '')
  if (line instanceof RegExp) assert.match(outcome.stderr, line)
  else assert.equal(outcome.stderr, `kiln: ${line}\n`)
  assert.equal(outcome.stderr.split('\n').length, 2, 'more than one line')
  assert.equal(outcome.code, 2)
  assert.equal(existsSync(dataDir), there)
}

// --- the command line ---

test('version, help, no command and an unknown one', async () => {
  const version = await runKiln(['version'])
  assert.deepEqual([version.code, version.stderr], [0, ''])
  assert.match(version.stdout, /^kiln \d+\.\d+\.\d+\n$/)
  assert.equal((await runKiln(['--version'])).stdout, version.stdout)

  const help = await runKiln(['help'])
  assert.deepEqual([help.code, help.stderr], [0, ''])
  assert.match(help.stdout, /^Usage: kiln COMMAND/)
  const nothing = await runKiln([])
  assert.deepEqual([nothing.code, nothing.stdout, nothing.stderr], [2, '', help.stdout])
  const unknown = await runKiln(['sevre'])
  assert.deepEqual([unknown.code, unknown.stdout, unknown.stderr], [2, '', "kiln: unknown command 'sevre'\n"])
})

test('serve --help lists every option, and does nothing else', async (t) => {
  const dataDir = join(folderFor(t), 'data')
  const help = await runKiln(['serve', '--data-dir', dataDir, '--help'])
  assert.deepEqual([help.code, help.stderr], [0, ''])
  for (const name of OPTIONS) assert.match(help.stdout, new RegExp(`^  --${name} \\S+ +\\S.*$`, 'm'))
  assert.match(help.stdout, /KILN_DATA_DIR/)
  assert.ok(!existsSync(dataDir))
})

test('bad options are refused, each with its sentence', async (t) => {
  const count = (name, value, low = 1) => `--${name}: '${value}' is not a whole number from ${low} to 1000000`
  const cases = [
    [['--listen', 'nowhere'], "--listen: 'nowhere' is not HOST:PORT"],
    [['--listen', '127.0.0.1:70000'], "--listen: '127.0.0.1:70000' is not HOST:PORT"],
    [['--listen', 'example.org:80'], "--listen: 'example.org' is not an IP address"],
    [['--listen', '[::1:80'], "--listen: '[::1' is not an IP address"],
    [['--listen'], '--listen needs a value'],
    [['--data-dir='], '--data-dir: must not be empty'],
    [['--account-id', '12'], "--account-id: '12' is not an account ID of 12 digits"],
    [['--account-id', '00000000000x'], "--account-id: '00000000000x' is not an account ID of 12 digits"],
    [['--region', 'US_EAST'], "--region: 'US_EAST' is not the name of a Region"],
    [['--concurrency', '0'], count('concurrency', 0)],
    [['--concurrency', '-1'], count('concurrency', -1)],
    [['--concurrency=1e3'], count('concurrency', '1e3')],
    [['--concurrency', '99999999999999999999'], count('concurrency', '99999999999999999999')],
    [['--unreserved-minimum', 'x'], count('unreserved-minimum', 'x', 0)],
    [['--unreserved-minimum', '2000'], '--unreserved-minimum 2000 is more than --concurrency 1000'],
    [['--scaling-rate', '0'], count('scaling-rate', 0)],
    [['--idle-timeout', '1.5'], count('idle-timeout', '1.5')],
    [['--auth', 'basic'], "--auth: 'basic' is not off or sigv4"],
    [['--auth', 'sigv4'], '--auth sigv4 needs --credentials FILE'],
    [['--credentials', 'x'], '--credentials has no effect without --auth sigv4'],
    [['--network', 'bridge'], "--network: 'bridge' is not nat or host or none"],
    [['--log-format', 'xml'], "--log-format: 'xml' is not text or json"],
    [['--s3-endpoint', 'ftp://x'], "--s3-endpoint: 'ftp://x' is not an http:// or https:// URL"],
    [['--runtimes-dir', '/nonexistent'], "--runtimes-dir: '/nonexistent' is not a directory"],
    [['--nonsense'], "unknown option '--nonsense'"],
    [['--nonsense=1'], "unknown option '--nonsense=1'"],
    [['stray'], "unexpected argument 'stray'"],
    [['-l'], "unexpected argument '-l'"],
    [['--listen', '0.0.0.0:0'], '--auth off is refused on 0.0.0.0, which is not a loopback address; use --auth sigv4'],
    [['--listen', '[::]:0'], '--auth off is refused on ::, which is not a loopback address; use --auth sigv4'],
    [['--auth', 'off', '--listen', '192.0.2.1:0'], /^kiln: --auth off is refused on 192\.0\.2\.1, /],
  ]
  for (const [args, line] of cases) await refuses(t, args, line)
})

test('a credentials file that is not there, or not one, is refused', async (t) => {
  const folder = folderFor(t)
  const missing = join(folder, 'missing')
  await refuses(t, ['--auth', 'sigv4', '--credentials', missing], /^kiln: .*missing.*: No such file or directory\n$/)
  const bad = join(folder, 'bad')
  writeFileSync(bad, 'nonsense\n')
  await refuses(t, ['--auth', 'sigv4', '--credentials', bad], /^kiln: .*bad.*\n$/)
})

test('options come from the environment, and the command line wins', async (t) => {
  await refuses(t, [], "KILN_CONCURRENCY: 'x' is not a whole number from 1 to 1000000", { env: { KILN_CONCURRENCY: 'x' } })
  await refuses(t, [], "KILN_LOG_FORMAT: 'xml' is not text or json", { env: { KILN_LOG_FORMAT: 'xml' } })
  const dataDir = join(folderFor(t), 'data')
  const env = { KILN_DATA_DIR: '/nonexistent/parent/data', KILN_CONCURRENCY: '7', KILN_UNRESERVED_MINIMUM: '1', KILN_ACCOUNT_ID: '123456789012' }
  const kiln = await startKiln({ dataDir, env })
  t.after(() => kiln.stop())
  const { FunctionArn } = await createProbe(kiln.lambda, 'probe')
  assert.equal(FunctionArn, 'arn:aws:lambda:us-east-1:123456789012:function:probe')
  assert.ok(existsSync(join(dataDir, 'kiln.db')))
  const { answers, refusals } = await invokeMany(kiln.lambda, 'probe', 10, { sleep_ms: 1500 })
  assert.deepEqual([answers.length, refusals.length], [7, 3])
})

test('a small account limit needs no other option', async (t) => {
  const kiln = await startKiln({ args: ['--concurrency', '5'] })
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'probe')
  const { answers, refusals } = await invokeMany(kiln.lambda, 'probe', 8, { sleep_ms: 1500 })
  assert.deepEqual([answers.length, refusals.length], [5, 3])
  // All of it is unreserved minimum.
  const reserve = new PutFunctionConcurrencyCommand({ FunctionName: 'probe', ReservedConcurrentExecutions: 1 })
  await assert.rejects(kiln.lambda.send(reserve), { name: 'InvalidParameterValueException' })
})

// --- refusals that concern the machine ---

test('a port in use is refused before the data directory is made', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((done) => server.on('listening', done))
  t.after(() => server.close())
  const { port } = server.address()
  await refuses(t, ['--listen', `127.0.0.1:${port}`], `127.0.0.1 port ${port} is in use by another program`)
})

test('a data directory in use is refused, and whoever uses it is not disturbed', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'probe')
  const { payload } = await invoke(kiln.lambda, 'probe')
  const held = invoke(kiln.lambda, 'probe', { sleep_ms: 2500 })
  const line = `data directory ${kiln.dataDir} is in use by another Kiln (process ${kiln.pid})`
  for (let i = 0; i < 2; i++) await refuses(t, ['--listen', '127.0.0.1:0'], line, { dataDir: kiln.dataDir })
  assert.deepEqual((await held).payload, { pid: payload.pid, count: 2 })
  assert.deepEqual((await invoke(kiln.lambda, 'probe')).payload.pid, payload.pid)
})

test('a data directory that is a file, or whose parent is missing or not writable, is refused', async (t) => {
  const folder = folderFor(t)
  const file = join(folder, 'file')
  writeFileSync(file, 'mine')
  await refuses(t, ['--listen', '127.0.0.1:0'], `data directory ${file} is not a directory`, { dataDir: file })
  assert.equal(readFileSync(file, 'utf8'), 'mine')
  const orphan = join(folder, 'missing', 'data')
  await refuses(t, ['--listen', '127.0.0.1:0'], `cannot create data directory ${orphan}: No such file or directory`, { dataDir: orphan })
})

test('a data directory that may not be written is refused', { skip: IS_ROOT && 'root may write anywhere; tried as root with a read-only file system' }, async (t) => {
  const folder = folderFor(t)
  chmodSync(folder, 0o555)
  const dataDir = join(folder, 'data')
  await refuses(t, ['--listen', '127.0.0.1:0'], `cannot create data directory ${dataDir}: Permission denied`, { dataDir })
})

test('a read-only file system is refused', { skip: !IS_ROOT && 'needs root to mount one' }, async (t) => {
  const folder = folderFor(t)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=64k', 'none', folder])
  try {
    const dataDir = join(folder, 'data')
    await refuses(t, ['--listen', '127.0.0.1:0'], `cannot create data directory ${dataDir}: Read-only file system`, { dataDir })
  } finally {
    execFileSync('umount', [folder])
  }
})

test('a database of a newer format, or not a database, is refused and left as it is', async (t) => {
  const dataDir = join(folderFor(t), 'data')
  const first = await startKiln({ dataDir })
  await createProbe(first.lambda, 'probe')
  await first.stop()
  const database = join(dataDir, 'kiln.db')
  const good = readFileSync(database)
  const newer = Buffer.from(good)
  newer.writeUInt32BE(newer.readUInt32BE(60) + 1, 60) // user_version, in SQLite's file header
  writeFileSync(database, newer)
  const args = ['--listen', '127.0.0.1:0']
  await refuses(t, args, /^kiln: \S+kiln\.db has format 2, this version of Kiln knows formats up to 1: use a newer Kiln\n$/, { dataDir })
  assert.deepEqual(readFileSync(database), newer)
  writeFileSync(database, 'this is no database, though it is long enough to look like a file '.repeat(100))
  await refuses(t, args, /^kiln: \S+kiln\.db is damaged or not a Kiln database \(.*\)\n$/, { dataDir })
  writeFileSync(database, good)
  const again = await startKiln({ dataDir })
  assert.equal((await invoke(again.lambda, 'probe')).payload.count, 1)
  await again.stop()
})

// --- running ---

test('one ready line on standard output, and nothing else', async (t) => {
  const kiln = spawnKiln()
  let stdout = ''
  kiln.child.stdout.on('data', (text) => (stdout += text))
  await kiln.ready()
  await createProbe(kiln.lambda, 'probe')
  await invoke(kiln.lambda, 'probe')
  await kiln.stop()
  assert.equal(stdout, `kiln: ready on http://127.0.0.1:${kiln.port}\n`)
})

test('health answers GET and HEAD', async (t) => {
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  const get = await kiln.fetch('/_kiln/health')
  assert.equal(get.status, 200)
  assert.match(get.headers.get('content-type'), /^application\/json/)
  const body = await get.text()
  assert.deepEqual(JSON.parse(body), { status: 'ready', functions: 0, environments: 0, concurrency: 0 })
  const head = await kiln.fetch('/_kiln/health', { method: 'HEAD' })
  assert.equal(head.status, 200)
  assert.equal(head.headers.get('content-length'), String(body.length))
  assert.equal(await head.text(), '')
  assert.equal((await kiln.fetch('/_kiln/health', { method: 'POST', body: '{}' })).status === 200, false)
})

test('the log in JSON: every line parses, with time, level and message', async (t) => {
  const kiln = await startKiln({ args: ['--log-format', 'json'] })
  await createProbe(kiln.lambda, 'probe')
  await invoke(kiln.lambda, 'probe')
  await kiln.stop()
  const lines = kiln.log.split('\n').filter((line) => line !== '' && !line.startsWith('kiln: ready on '))
  assert.ok(lines.length > 0)
  for (const line of lines) {
    const entry = JSON.parse(line)
    assert.match(entry.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.match(entry.level, /^(debug|info|warning|error)$/)
    assert.equal(typeof entry.message, 'string')
  }
  assert.ok(lines.some((line) => JSON.parse(line).message === 'stopping on signal 15'))
})

test('IPv6', async (t) => {
  const kiln = spawnKiln({ args: ['--listen', '[::1]:0'] })
  const line = await waitUntil(() => kiln.log.match(/ready on http:\/\/\[::1\]:(\d+)\n/), { what: 'ready line' })
  const lambda = new LambdaClient({
    endpoint: `http://[::1]:${line[1]}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  })
  t.after(() => kiln.stop())
  await createProbe(lambda, 'probe')
  assert.equal((await invoke(lambda, 'probe')).payload.count, 1)
  lambda.destroy()
})

test('SIGTERM: nothing new is accepted, invokes under way are answered, exit 0', async () => {
  for (const signal of ['SIGTERM', 'SIGINT']) {
    const kiln = await startKiln()
    await createProbe(kiln.lambda, 'probe', { Timeout: 20 })
    const held = Promise.all([1, 2, 3].map(() => invoke(kiln.lambda, 'probe', { sleep_ms: 2000 })))
    await waitUntil(async () => (await health(kiln)).concurrency === 3, { what: 'three in flight' })
    kiln.child.kill(signal)
    await waitUntil(() => kiln.log.includes('stopping on signal'), { what: 'the daemon stopping' })
    await assert.rejects(fetch(kiln.endpoint + '/_kiln/health', { headers: { connection: 'close' } }))
    for (const { payload, functionError } of await held) {
      assert.equal(functionError, undefined)
      assert.equal(payload.count, 1)
    }
    assert.deepEqual(await kiln.exited, { code: 0, signal: null })
    await kiln.stop()
  }
})

test('a second signal ends everything at once', async () => {
  const kiln = await startKiln()
  await createProbe(kiln.lambda, 'probe', { Timeout: 60 })
  const held = invoke(kiln.lambda, 'probe', { sleep_ms: 50_000 }).catch((error) => error)
  await waitUntil(async () => (await health(kiln)).concurrency === 1, { what: 'one in flight' })
  kiln.child.kill('SIGTERM')
  await waitUntil(() => kiln.log.includes('stopping on signal'), { what: 'the daemon stopping' })
  kiln.child.kill('SIGTERM')
  // Long before the invoke would have ended; the harness itself would kill only after 30 s.
  assert.deepEqual(await kiln.exited, { code: 0, signal: null })
  assert.ok((await held) instanceof Error)
  await kiln.stop()
})

test('a restart keeps functions, versions, aliases, reservations and code', async (t) => {
  const dataDir = join(folderFor(t), 'data')
  const first = await startKiln({ dataDir })
  const created = await createProbe(first.lambda, 'probe', { Description: 'kept', Environment: { Variables: { KEPT: 'b' } } })
  await first.lambda.send(new PublishVersionCommand({ FunctionName: 'probe' }))
  await first.lambda.send(new CreateAliasCommand({ FunctionName: 'probe', Name: 'live', FunctionVersion: '1' }))
  await first.lambda.send(new PutFunctionConcurrencyCommand({ FunctionName: 'probe', ReservedConcurrentExecutions: 3 }))
  const list = (client) => client.send(new ListVersionsByFunctionCommand({ FunctionName: 'probe' }))
  const before = await list(first.lambda)
  await first.stop()
  const second = await startKiln({ dataDir })
  t.after(() => second.stop())
  assert.deepEqual((await list(second.lambda)).Versions, before.Versions)
  assert.equal(before.Versions[0].CodeSha256, created.CodeSha256)
  assert.equal((await second.lambda.send(new GetAliasCommand({ FunctionName: 'probe', Name: 'live' }))).FunctionVersion, '1')
  const reserved = await second.lambda.send(new GetFunctionConcurrencyCommand({ FunctionName: 'probe' }))
  assert.equal(reserved.ReservedConcurrentExecutions, 3)
  assert.equal((await invoke(second.lambda, 'probe', {}, { Qualifier: 'live' })).version, '1')
})

// --- connections ---

/** Raw connections to the daemon; those that open. */
async function open(port, count) {
  const sockets = []
  for (let at = 0; at < count; at += 500) {
    const batch = Array.from({ length: Math.min(500, count - at) }, () => connect(port, '127.0.0.1'))
    await Promise.all(
      batch.map(
        (socket) =>
          new Promise((done) => {
            socket.once('connect', done).on('error', done)
          }),
      ),
    )
    sockets.push(...batch)
  }
  return sockets
}

test('10,000 idle connections cost little, and invokes go on', async (t) => {
  const limit = Number(readFileSync('/proc/self/limits', 'utf8').match(/^Max open files +\d+ +(\d+)/m)[1])
  const count = Math.min(10_000, limit - 1000)
  if (count < 10_000) t.diagnostic(`only ${count} connections: the limit on descriptors is ${limit}`)
  const kiln = await startKiln()
  t.after(() => kiln.stop())
  await createProbe(kiln.lambda, 'probe')
  await invoke(kiln.lambda, 'probe')
  const before = usageOf(kiln.pid)
  const sockets = await open(kiln.port, count)
  t.after(() => sockets.forEach((socket) => socket.destroy()))
  await waitUntil(() => usageOf(kiln.pid).descriptors >= before.descriptors + count, { what: 'every connection being accepted' })
  for (let i = 2; i <= 100; i++) assert.equal((await invoke(kiln.lambda, 'probe')).payload.count, i)
  const grown = usageOf(kiln.pid).residentKiB - before.residentKiB
  assert.ok(grown < count * 4, `${grown} KiB for ${count} connections`)
  for (const socket of sockets) socket.destroy()
  await waitUntil(() => usageOf(kiln.pid).descriptors <= before.descriptors + 20, { what: 'every connection being closed' })
})

test('slow senders hold no unit of concurrency', async (t) => {
  const kiln = await startKiln({ args: ['--concurrency', '3'] })
  const sockets = await open(kiln.port, 60)
  t.after(async () => {
    for (const socket of sockets) socket.destroy() // before the end, which waits for requests under way
    await kiln.stop()
  })
  await createProbe(kiln.lambda, 'probe')
  const path = '/2015-03-31/functions/probe/invocations'
  sockets.forEach((socket, i) => {
    if (i % 3 === 0) socket.write('POST /2015-03') // in the request line
    else if (i % 3 === 1) socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nX-Slow: `) // in a header
    else socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"a":`) // in the body
  })
  for (let round = 0; round < 5; round++) {
    assert.equal((await health(kiln)).concurrency, 0)
    const { answers, refusals } = await invokeMany(kiln.lambda, 'probe', 3, { sleep_ms: 100 })
    assert.deepEqual([answers.length, refusals.length], [3, 0])
    for (const socket of sockets) socket.write(round % 2 ? ' ' : 'x')
  }
})
