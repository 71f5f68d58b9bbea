// kill -9 of the daemon and of the launcher under load: nothing of a sandbox is left, and nothing acknowledged is lost.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  CreateAliasCommand,
  CreateFunctionCommand,
  DeleteFunctionCommand,
  GetAliasCommand,
  GetFunctionConcurrencyCommand,
  GetFunctionConfigurationCommand,
  ListFunctionsCommand,
  PublishVersionCommand,
  PutFunctionConcurrencyCommand,
} from '@aws-sdk/client-lambda'
import { invoke, invokeMany, IS_ROOT, ROLE, startKiln, temporaryDirectory, waitUntil } from '../lib/kiln.mjs'
import { createProbe, probeZip } from '../lib/probe.mjs'

/** Processes whose parent chain leads to `pid`, itself left out. */
function descendants(pid) {
  const parents = new Map()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const [, parent] = readFileSync(`/proc/${name}/stat`, 'utf8').match(/\) \S (\d+)/)
      parents.set(Number(name), Number(parent))
    } catch {
      // gone meanwhile
    }
  }
  const found = []
  const queue = [pid]
  while (queue.length > 0) {
    const parent = queue.pop()
    for (const [child, itsParent] of parents) {
      if (itsParent === parent) {
        found.push(child)
        queue.push(child)
      }
    }
  }
  return found
}

/** Alive, and not a zombie that nobody has reaped yet. */
function isRunning(pid) {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** The name of a data directory's sandboxes in the cgroup trees, as serve.c derives it (FNV-1a of the path). */
function instanceOf(dataDir) {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(realpathSync(dataDir))) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
  return hash.toString(16).padStart(16, '0')
}

/** The sandboxes' cgroup directories of that Kiln, in whichever trees this machine has. */
function cgroups(dataDir) {
  const folder = join('kiln', instanceOf(dataDir))
  const trees = ['', ...readdirSync('/sys/fs/cgroup')].map((tree) => join('/sys/fs/cgroup', tree, folder))
  return trees.filter(existsSync).flatMap((tree) =>
    readdirSync(tree, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(tree, entry.name)),
  )
}

function mounts() {
  return readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length
}

/** Two functions busy with a dozen sandboxes. Returns what must vanish. */
async function underLoad(kiln) {
  await Promise.all([createProbe(kiln.lambda, 'one', { Timeout: 60 }), createProbe(kiln.lambda, 'two', { Timeout: 60 })])
  const load = [
    invokeMany(kiln.lambda, 'one', 6, { sleep_ms: 30_000 }),
    invokeMany(kiln.lambda, 'two', 6, { sleep_ms: 30_000 }),
  ].map((promise) => promise.catch(() => {})) // the connections break
  const busy = async () => (await (await kiln.fetch('/_kiln/health')).json()).concurrency === 12
  await waitUntil(busy, { what: 'twelve invokes in flight' })
  // Environments are there when init and runtime are: two processes each, beside the launcher.
  await waitUntil(() => descendants(kiln.pid).length >= 25, { what: 'twelve sandboxes' })
  return { load, processes: descendants(kiln.pid) }
}

async function nothingIsLeft(dataDir, processes, mountsBefore) {
  await waitUntil(() => !processes.some(isRunning), { what: `the end of ${processes.length} processes` })
  await waitUntil(() => cgroups(dataDir).length === 0, { what: `the end of the cgroups ${cgroups(dataDir)}` })
  assert.equal(mounts(), mountsBefore)
}

for (const victim of ['daemon', 'launcher']) {
  test(`kill -9 of the ${victim} during load leaves no sandbox, cgroup or mount`, { skip: !IS_ROOT && 'needs root' }, async () => {
    const dataDir = temporaryDirectory()
    const before = mounts()
    const kiln = await startKiln({ dataDir })
    const { load, processes } = await underLoad(kiln)
    assert.ok(cgroups(dataDir).length >= 12)
    const launcher = processes.find((pid) => descendants(pid).length >= 24)
    process.kill(victim === 'daemon' ? kiln.pid : launcher, 'SIGKILL')
    const { code, signal } = await kiln.exited
    assert.deepEqual([code, signal], victim === 'daemon' ? [null, 'SIGKILL'] : [1, null])
    await Promise.all(load)
    await nothingIsLeft(dataDir, processes, before)
    const again = await startKiln({ dataDir })
    assert.equal((await invoke(again.lambda, 'one')).functionError, undefined)
    await again.stop()
    rmSync(dataDir, { recursive: true })
  })
}

test('daemon and launcher killed together: the next start clears away what was left', { skip: !IS_ROOT && 'needs root' }, async () => {
  const dataDir = temporaryDirectory()
  const kiln = await startKiln({ dataDir })
  const { load, processes } = await underLoad(kiln)
  assert.ok(cgroups(dataDir).length >= 12)
  const launcher = processes.find((pid) => descendants(pid).length >= 24)
  process.kill(kiln.pid, 'SIGKILL')
  process.kill(launcher, 'SIGKILL')
  await kiln.exited
  await Promise.all(load)
  await waitUntil(() => !processes.some(isRunning), { what: 'the end of every process' })
  const again = await startKiln({ dataDir })
  assert.equal((await invoke(again.lambda, 'two')).functionError, undefined)
  await again.stop()
  assert.deepEqual(cgroups(dataDir), [])
  rmSync(dataDir, { recursive: true })
})

test('every acknowledged function, version, alias and reservation survives kill -9', async (t) => {
  const dataDir = temporaryDirectory()
  const acknowledged = { functions: new Set(), versions: new Map(), aliases: new Set(), reserved: new Set(), deleted: new Set() }
  for (let round = 0; round < 4; round++) {
    const kiln = await startKiln({ dataDir })
    let going = true
    const writer = async (lane) => {
      for (let i = 0; going; i++) {
        const name = `f-${round}-${lane}-${i}`
        const input = { FunctionName: name }
        const send = (command) => kiln.lambda.send(command)
        await send(
          new CreateFunctionCommand({
            ...input, Runtime: 'provided.al2023', Handler: 'x', Role: ROLE, Code: { ZipFile: probeZip() }, Publish: true,
          }),
        )
        acknowledged.functions.add(name)
        acknowledged.versions.set(name, 1)
        await waitUntil(async () => (await send(new GetFunctionConfigurationCommand(input))).State === 'Active')
        await send(new CreateAliasCommand({ ...input, Name: 'live', FunctionVersion: '1' }))
        acknowledged.aliases.add(name)
        await send(new PutFunctionConcurrencyCommand({ ...input, ReservedConcurrentExecutions: 0 }))
        acknowledged.reserved.add(name)
        if (i % 3 === 2) {
          acknowledged.functions.delete(name)
          await send(new DeleteFunctionCommand(input))
          acknowledged.deleted.add(name)
        }
      }
    }
    const lanes = [0, 1, 2, 3].map((lane) => writer(lane).catch(() => {}))
    await new Promise((done) => setTimeout(done, 600 + 150 * round))
    await waitUntil(() => acknowledged.functions.size > 2 * (round + 1), { timeoutMs: 60_000, what: 'enough functions' })
    await kiln.kill()
    going = false
    await Promise.all(lanes)
  }
  const kiln = await startKiln({ dataDir })
  t.after(() => kiln.child.kill('SIGKILL'))
  const send = (command) => kiln.lambda.send(command)
  assert.ok(acknowledged.functions.size > 8, `only ${acknowledged.functions.size} functions were made`)
  for (const name of acknowledged.functions) {
    const configuration = await send(new GetFunctionConfigurationCommand({ FunctionName: name, Qualifier: '1' }))
    assert.equal(configuration.Version, '1')
    await waitUntil(async () => (await send(new GetFunctionConfigurationCommand({ FunctionName: name }))).State === 'Active')
    if (acknowledged.aliases.has(name))
      assert.equal((await send(new GetAliasCommand({ FunctionName: name, Name: 'live' }))).FunctionVersion, '1')
    if (acknowledged.reserved.has(name))
      assert.equal((await send(new GetFunctionConcurrencyCommand({ FunctionName: name }))).ReservedConcurrentExecutions, 0)
  }
  const listed = new Set()
  let Marker
  do {
    const page = await send(new ListFunctionsCommand({ Marker }))
    for (const { FunctionName } of page.Functions) listed.add(FunctionName)
    Marker = page.NextMarker
  } while (Marker)
  for (const name of acknowledged.deleted) assert.ok(!listed.has(name), `${name} is back from the dead`)
  const [survivor] = acknowledged.functions
  await send(new PublishVersionCommand({ FunctionName: survivor }))
  await kiln.stop()
  assert.ok(existsSync(join(dataDir, 'kiln.db')))
  rmSync(dataDir, { recursive: true })
})
