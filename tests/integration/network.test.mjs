// --network nat with the real daemon. Everything happens in a network namespace of the test's own, which this file runs
// itself in once more: it is the "host" there, connected to an "outside" namespace with a server. No real network is used.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BINARY, IS_ROOT, spawnKiln, startKiln, temporaryDirectory, waitUntil } from '../lib/kiln.mjs'
import { createPython, python } from '../lib/programs.mjs'

const INSIDE = process.env.KILN_TEST_IN_NAMESPACE
const OUTSIDE = '192.0.2.2'
const HOST = '192.0.2.1'

const run = (command, ...args) => execFileSync(command, args, { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' })
const interfaces = () => run('ip', '-o', 'link').match(/kiln-[0-9a-f]{8}/g) ?? []

/** A web server in a namespace of its own that tells who called. */
async function startOutside() {
  const serve = `
    require('node:http').createServer((request, response) => response.end(request.socket.remoteAddress))
      .listen(80, '0.0.0.0', () => console.log('ready'))`
  const child = spawn('unshare', ['--net', 'sh', '-c', 'ip link set lo up && exec "$0" -e "$1"', process.execPath, serve], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout })) {
    assert.equal(line, 'ready')
    break
  }
  run('ip', 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', child.pid)
  run('ip', 'address', 'add', `${HOST}/24`, 'dev', 'out')
  run('ip', 'link', 'set', 'out', 'up')
  run('nsenter', '-t', child.pid, '-n', 'ip', 'address', 'add', `${OUTSIDE}/24`, 'dev', 'eth0')
  run('nsenter', '-t', child.pid, '-n', 'ip', 'link', 'set', 'eth0', 'up')
  return child
}

/** A resolver on loopback that has one answer for every question. */
async function startResolver() {
  const socket = createSocket('udp4')
  socket.on('message', (question, { address, port }) => {
    const end = question.indexOf(0, 12) + 5
    const isA = question.readUInt16BE(end - 4) === 1
    const header = Buffer.from([question[0], question[1], 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0])
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...OUTSIDE.split('.').map(Number)])
    socket.send(Buffer.concat([header, question.subarray(12, end), ...(isA ? [record] : [])]), port, address)
  })
  await new Promise((done) => socket.bind(53, '127.0.0.1', done))
  return socket
}

const fetching = (url) => `
import urllib.request
try:
    with urllib.request.urlopen(${JSON.stringify(url)}, timeout=5) as answer:
        result = answer.read().decode()
except OSError as error:
    result = str(error)`

/** A program that runs kiln where the settings of the network cannot be changed, as in a container. */
function confined(folder) {
  const path = join(folder, 'confined')
  const script = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$0" "$@"'
  writeFileSync(path, `#!/bin/sh\nexec unshare -m sh -c '${script}' ${BINARY} "$@"\n`)
  chmodSync(path, 0o755)
  return path
}

function inside() {
  describe('network nat', () => {
    let outside
    let resolver
    let kiln
    const folder = temporaryDirectory()
    const fetched = (url, daemon = kiln) => python(daemon.lambda, 'inside', fetching(url))

    before(async () => {
      run('ip', 'link', 'set', 'lo', 'up')
      writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n')
      run('mount', '--bind', join(folder, 'resolv.conf'), '/etc/resolv.conf')
      outside = await startOutside()
      resolver = await startResolver()
      kiln = await startKiln({ args: ['--function-endpoint', 'self'] })
      await createPython(kiln.lambda, 'inside')
      await createPython(kiln.lambda, 'other')
    })
    after(async () => {
      await kiln?.stop()
      resolver?.close()
      outside?.kill('SIGKILL')
    })

    test('it is what root gets, and functions reach the world by the address of the host', async () => {
      assert.equal(interfaces().length, 1)
      assert.equal(await fetched(`http://${OUTSIDE}/`), HOST)
      assert.equal(await python(kiln.lambda, 'inside', 'result = os.environ["AWS_LAMBDA_RUNTIME_API"]'), '169.254.100.1:9001')
    })

    test("names are resolved by a resolver on the host's loopback", async () => {
      assert.equal(await fetched('http://somewhere.example/'), HOST)
    })

    test('the host has a name, by which the API is reached when wanted, and nothing else of its loopback', async () => {
      const endpoint = await python(kiln.lambda, 'inside', 'result = os.environ["AWS_ENDPOINT_URL"]')
      assert.equal(endpoint, `http://host.kiln.internal:${kiln.port}`)
      const health = JSON.parse(await fetched(`${endpoint}/_kiln/health`))
      assert.equal(typeof health.environments, 'number')
      assert.match(await fetched(`http://127.0.0.1:${kiln.port}/`), /Connection refused/)
      const other = await startKiln()
      await createPython(other.lambda, 'inside')
      assert.match(await fetched(`http://host.kiln.internal:${other.port}/`, other), /Connection refused/)
      assert.match(await fetched(`http://host.kiln.internal:${other.port}/`), /Connection refused/)
      await other.stop()
    })

    test('functions do not reach each other', async () => {
      const addresses = 'import fcntl, struct\nwith socket.socket() as s: result = socket.inet_ntoa(fcntl.ioctl(s, 0x8915, b"eth0".ljust(40, b"\\0"))[20:24])'
      const [own, others] = [await python(kiln.lambda, 'inside', addresses), await python(kiln.lambda, 'other', addresses)]
      assert.notEqual(own, others)
      const listening = python(kiln.lambda, 'other', `
with socket.create_server(("0.0.0.0", 8000)) as server:
    server.settimeout(2)
    try:
        server.accept()
        result = "somebody came"
    except TimeoutError:
        result = "nobody came"`)
      for (let i = 0; i < 5; i++) assert.match(await fetched(`http://${others}:8000/`), /Connection refused/)
      assert.equal(await listening, 'nobody came')
    })

    test('an environment that takes the place of another has its network', async () => {
      for (let i = 0; i < 3; i++) {
        await python(kiln.lambda, 'inside', 'os._exit(1)').catch(() => {})
        assert.equal(await fetched(`http://${OUTSIDE}/`), HOST)
      }
    })

    test('kill -9 leaves nothing, and the next start works', async () => {
      const dataDir = temporaryDirectory()
      const first = await startKiln({ dataDir })
      await createPython(first.lambda, 'inside')
      assert.equal(await fetched(`http://${OUTSIDE}/`, first), HOST)
      assert.equal(interfaces().length, 2)
      await first.kill('SIGKILL')
      const second = await startKiln({ dataDir })
      assert.equal(await fetched(`http://${OUTSIDE}/`, second), HOST)
      await second.stop()
      await waitUntil(() => interfaces().length === 1, { what: 'the interfaces being gone' })
      assert.equal(await fetched(`http://${OUTSIDE}/`), HOST)
    })

    test("where it cannot be had it is refused, or by default the host's network with a warning", async () => {
      const binary = confined(folder)
      const reason = 'network nat cannot be had: cannot set net.ipv4.ip_forward: Read-only file system'
      const refused = spawnKiln({ binary, args: ['--network', 'nat'] })
      assert.notEqual((await refused.exited).code, 0)
      assert.equal(refused.log, `kiln: ${reason}\n`)
      const fallen = await startKiln({ binary, args: ['--function-endpoint', 'self'] })
      assert.ok(fallen.log.includes(` warning functions use the host's network and its loopback: ${reason}\n`), fallen.log)
      await createPython(fallen.lambda, 'inside')
      assert.equal(await fetched(`http://${OUTSIDE}/`, fallen), HOST)
      const endpoint = await python(fallen.lambda, 'inside', 'result = os.environ["AWS_ENDPOINT_URL"]')
      assert.equal(endpoint, fallen.endpoint)
      assert.match(await fetched(`${endpoint}/_kiln/health`, fallen), /environments/)
      await fallen.stop()
    })

    test('it is refused to an ordinary user', async () => {
      chmodSync(folder, 0o755)
      run('cp', BINARY, join(folder, 'kiln'))
      run('cp', '-r', join(process.env.KILN_RUNTIMES_DIR ?? join(BINARY, '../../runtimes')), join(folder, 'runtimes'))
      const refused = spawnKiln({
        binary: join(folder, 'kiln'),
        uid: 64123,
        args: ['--network', 'nat', '--runtimes-dir', join(folder, 'runtimes')],
      })
      assert.notEqual((await refused.exited).code, 0)
      assert.match(refused.log, /^kiln: network nat cannot be had: this needs root\n$/)
    })
  })
}

if (INSIDE) {
  inside()
} else {
  test('network nat in a namespace of its own', { skip: !IS_ROOT && 'network namespaces with a way out need root' }, () => {
    const env = { ...process.env, KILN_TEST_IN_NAMESPACE: '1' }
    delete env.NODE_TEST_CONTEXT // the inner run is none of the outer's
    const file = fileURLToPath(import.meta.url)
    const done = spawnSync('unshare', ['--net', '--mount', process.execPath, file], { env, encoding: 'utf8', timeout: 300_000 })
    assert.equal(done.status, 0, done.stdout + done.stderr)
  })
}
