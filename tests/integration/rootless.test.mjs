// Kiln started by an ordinary user: what works, what it says cannot be enforced, and that nothing is left of it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { DeleteFunctionCommand, PublishLayerVersionCommand } from '@aws-sdk/client-lambda'
import { BINARY, invoke, invokeMany, IS_ROOT, REPOSITORY, startKiln, waitUntil, zip } from '../lib/kiln.mjs'
import { createProbe } from '../lib/probe.mjs'
import { processesNamed, processesOf } from '../lib/processes.mjs'
import { createProgram, createPython, invokeToEnd, python } from '../lib/programs.mjs'

// A uid that no account and no sandbox has; an ordinary user who runs the tests is one already.
const UID = IS_ROOT ? 64123 : process.getuid()

/** Whether that user may make user namespaces with mounts in them; the reason when not. */
function forbidden() {
  try {
    const as = IS_ROOT ? { uid: UID, gid: UID } : {}
    execFileSync('unshare', ['--user', '--map-root-user', '--mount', 'true'], { stdio: 'pipe', cwd: '/', ...as })
    return false
  } catch (error) {
    return `this machine does not let users make user namespaces: ${error.stderr ?? error.message}`
  }
}

const skip = forbidden()
if (skip) console.error(`ROOTLESS IS NOT TESTED: ${skip}`)

/** The binary and the runtimes where every user can read them, wherever the repository lies. */
function copyForEveryone() {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-copy-'))
  chmodSync(folder, 0o755)
  copyFileSync(BINARY, join(folder, 'kiln'))
  chmodSync(join(folder, 'kiln'), 0o755)
  cpSync(process.env.KILN_RUNTIMES_DIR ?? join(REPOSITORY, 'runtimes'), join(folder, 'runtimes'), { recursive: true })
  execFileSync('chmod', ['-R', 'a+rX', folder])
  return folder
}

for (const network of ['host', 'none']) {
  describe(`rootless, --network ${network}`, { skip }, () => {
    let folder
    let kiln
    const start = (options) =>
      startKiln({
        uid: UID,
        binary: join(folder, 'kiln'),
        env: { KILN_RUNTIMES_DIR: join(folder, 'runtimes'), HOME: '/' },
        ...options,
        args: ['--network', network, ...(options?.args ?? [])],
      })

    before(async () => {
      folder = copyForEveryone()
      kiln = await start()
    })
    after(async () => {
      await kiln.stop()
      rmSync(folder, { recursive: true })
    })

    test('it runs as that user, and says plainly what it cannot enforce', () => {
      assert.match(readFileSync(`/proc/${kiln.pid}/status`, 'utf8'), new RegExp(`^Uid:\t${UID}\t${UID}\t`, 'm'))
      const warnings = kiln.log.split('\n').filter((line) => / warning /.test(line))
      assert.ok(warnings.some((line) => line.endsWith("not started as root: all functions run under this user's own uid")), kiln.log)
      for (const line of warnings) assert.match(line, /^\S+Z warning \S.*(not|under)/)
    })

    test('layers are merged at /opt', async () => {
      const layers = ['a', 'b'].map((name) => ({ LayerName: name, Content: { ZipFile: zip({ [name]: name, both: name }) } }))
      const arns = []
      for (const layer of layers) arns.push((await kiln.lambda.send(new PublishLayerVersionCommand(layer))).LayerVersionArn)
      await createPython(kiln.lambda, 'layered', { Layers: arns })
      assert.deepEqual(await python(kiln.lambda, 'layered', 'result = [sorted(os.listdir("/opt")), read("/opt/both")]'), [['a', 'b', 'both'], 'b'])
    })

    test('a provided and a Python function answer', async () => {
      await createProbe(kiln.lambda, 'probe')
      assert.equal((await invoke(kiln.lambda, 'probe')).payload.count, 1)
      await createPython(kiln.lambda, 'inside')
      assert.equal(await python(kiln.lambda, 'inside', 'result = 6 * 7'), 42)
      const { answers } = await invokeMany(kiln.lambda, 'probe', 10, { sleep_ms: 200 })
      assert.equal(answers.filter(({ functionError }) => functionError === undefined).length, 10)
    })

    test('a function sees its own processes, cannot write outside /tmp, and has no capabilities', async () => {
      const inside = (code) => python(kiln.lambda, 'inside', code)
      assert.equal(await inside('result = len([name for name in os.listdir("/proc") if name.isdigit()])'), 2)
      const made = await inside(`
places = ["/", "/var/task", "/opt", "/usr", "/etc", "/dev", "/var", "/tmp"]
result = {place: attempt(lambda: open(os.path.join(place, "made"), "w")) for place in places}`)
      for (const [place, outcome] of Object.entries(made)) assert.equal(outcome, place === '/tmp' ? 'OK' : 'EROFS', place)
      assert.equal(await inside(`result = attempt(lambda: os.listdir(${JSON.stringify(kiln.dataDir)}))`), 'ENOENT')
      const status = await inside('result = read("/proc/self/status")')
      for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
        assert.match(status, new RegExp(`^${name}:\t0000000000000000$`, 'm'))
      }
      assert.match(status, /^NoNewPrivs:\t1$/m)
      assert.match(status, /^Seccomp:\t2$/m)
      assert.notEqual(await inside('result = os.getuid()'), 0)
      assert.equal(await inside('result = attempt(lambda: os.setuid(0))'), 'EINVAL') // 0 is nobody there
    })

    test('a user namespace gives no way out: the calls that root would be refused are refused here too', async () => {
      await createProgram(kiln.lambda, 'intruder', 'intruder', { MemorySize: 1769 })
      const { payload, functionError } = await invokeToEnd(kiln.lambda, 'intruder', { try: 'calls' })
      assert.equal(functionError, undefined)
      const through = Object.entries(payload).filter(([, outcome]) => outcome === 'OK')
      assert.deepEqual(through, [])
    })

    test('timeouts and crashes reset the environment', async () => {
      await createProbe(kiln.lambda, 'frail', { Timeout: 1 })
      const hung = await invoke(kiln.lambda, 'frail', { hang: 1 })
      assert.equal(hung.payload.errorType, 'Sandbox.Timedout')
      assert.equal((await invokeToEnd(kiln.lambda, 'frail', {})).payload.count, 1)
      for (const [event, text] of [
        [{ exit: 3 }, 'exit status 3'],
        [{ signal: 9 }, 'signal: killed'],
      ]) {
        const crash = await invokeToEnd(kiln.lambda, 'frail', event)
        assert.equal(crash.payload.errorType, 'Runtime.ExitError')
        assert.ok(crash.payload.errorMessage.endsWith(`Error: Runtime exited with error: ${text}`), crash.text)
        assert.equal((await invokeToEnd(kiln.lambda, 'frail', {})).payload.count, 1)
      }
    })

    test('processes left behind go with their environment', async () => {
      await createProgram(kiln.lambda, 'leaver', 'intruder', { Timeout: 2 })
      const [first, second] = ['a', 'b'].map((letter) => `less-${process.pid}-${letter}`.slice(-15))
      const hung = await invoke(kiln.lambda, 'leaver', { try: 'daemon', name: first, hang: 1 })
      assert.equal(hung.payload.errorType, 'Sandbox.Timedout')
      await waitUntil(() => processesNamed(first).length === 0, { what: 'the first daemon being gone' })
      await invokeToEnd(kiln.lambda, 'leaver', { try: 'daemon', name: second })
      assert.equal(processesNamed(second).length, 1)
      await kiln.lambda.send(new DeleteFunctionCommand({ FunctionName: 'leaver' }))
      await waitUntil(() => processesNamed(second).length === 0, { what: 'the second daemon being gone' })
    })

    test('kill -9 of the daemon leaves no process, and the next start has everything', async (t) => {
      const first = await start({ dataDir: mkdtempOwned(t) })
      await createProgram(first.lambda, 'leaver', 'intruder')
      await createProbe(first.lambda, 'probe')
      const name = `left-${process.pid}`.slice(-15)
      await invoke(first.lambda, 'leaver', { try: 'daemon', name })
      const held = invoke(first.lambda, 'probe', { sleep_ms: 20_000 }).catch((error) => error)
      await waitUntil(async () => (await (await first.fetch('/_kiln/health')).json()).concurrency === 1, { what: 'the invoke running' })
      const before = processesOf(UID).length
      assert.ok(before > 3)
      await first.kill('SIGKILL')
      await held
      await waitUntil(() => processesNamed(name).length === 0, { what: 'the daemonised process being gone' })
      await waitUntil(() => !processesOf(UID).some((pid) => isOf(pid, first.pid)), { what: 'the launcher being gone' })
      const second = await start({ dataDir: first.dataDir })
      assert.equal((await invoke(second.lambda, 'probe')).payload.count, 1)
      await second.stop()
    })
  })
}

function isOf(pid, parent) {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').match(/\) \S (\d+)/)[1]) === parent
  } catch {
    return false
  }
}

function mkdtempOwned(t) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-test-'))
  if (IS_ROOT) execFileSync('chown', [`${UID}:${UID}`, folder])
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
