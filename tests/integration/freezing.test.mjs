// A frozen environment: nothing in it makes progress, it takes no CPU, and after thawing timers and clocks are sane.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { createFunction, invoke, IS_ROOT, nodeZip, sleep, startKiln, waitUntil } from '../lib/kiln.mjs'
import { environmentProcesses, ticksOf } from '../lib/processes.mjs'
import { createPython, invokeToEnd, python } from '../lib/programs.mjs'

const skip = !IS_ROOT && 'freezing needs root (see docs/architecture.md, Rootless)'
const FROZEN_MS = 800

let kiln
before(async () => (kiln = await startKiln()))
after(() => kiln.stop())

const cgroups = readFileSync('/proc/mounts', 'utf8').match(/^\S+ (\S+) cgroup2 /m)?.[1]

/** Is the process in a frozen group of the version 2 tree, where freezing is done? */
function isFrozen(pid) {
  try {
    const path = readFileSync(`/proc/${pid}/cgroup`, 'utf8').match(/^0::(.*)$/m)[1]
    return /^frozen 1$/m.test(readFileSync(`${cgroups}${path}/cgroup.events`, 'utf8'))
  } catch {
    return false // gone, or moved meanwhile
  }
}

/** Waits until all that runs for a function is frozen, and gives its process ids. */
function frozen(name) {
  return waitUntil(() => {
    const pids = environmentProcesses(name)
    return pids.length && pids.every(isFrozen) ? pids : undefined
  }, { what: `${name} being frozen` })
}

test('a thread makes no progress between invokes, and takes no CPU', { skip }, async () => {
  await createPython(kiln.lambda, 'thread', { MemorySize: 1769 })
  await python(kiln.lambda, 'thread', `
STATE["gap"], STATE["last"] = 0, time.monotonic()
def spin():
    while True:
        now = time.monotonic()
        STATE["gap"], STATE["last"] = max(STATE["gap"], now - STATE["last"]), now
threading.Thread(target=spin, daemon=True).start()`)
  const pids = await frozen('thread')
  const ticks = ticksOf(pids)
  await sleep(FROZEN_MS)
  assert.equal(ticksOf(pids), ticks, 'CPU was used while frozen')
  const [gap, wall] = await python(kiln.lambda, 'thread', 'time.sleep(0.05); result = [STATE["gap"], time.time()]')
  assert.ok(gap * 1000 >= FROZEN_MS, `the longest pause was ${gap} s`)
  assert.ok(Math.abs(wall * 1000 - Date.now()) < 10_000, 'the wall clock goes on')
})

test('a child process is frozen and thawed with its function', { skip }, async () => {
  await createPython(kiln.lambda, 'child')
  await python(kiln.lambda, 'child', 'STATE["child"] = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])')
  const pids = await frozen('child')
  assert.ok(pids.length >= 2, pids.join())
  const ticks = ticksOf(pids)
  await sleep(FROZEN_MS)
  assert.equal(ticksOf(pids), ticks)
  assert.equal(await python(kiln.lambda, 'child', 'result = STATE["child"].poll(); STATE["child"].kill()'), null)
})

test('a timer that is due while frozen fires after thawing; the deadline is the new invocation\'s', { skip }, async () => {
  const source = `
let due
export const handler = async (event, context) => {
  if (event.set) {
    due = new Promise((fire) => setTimeout(() => fire(Date.now()), 600))
    return Date.now()
  }
  return { begun: Date.now(), fired: await due, left: context.getRemainingTimeInMillis() }
}`
  await createFunction(kiln.lambda, { FunctionName: 'timer', Runtime: 'nodejs20.x', Timeout: 20, Code: { ZipFile: nodeZip(source) } })
  await invokeToEnd(kiln.lambda, 'timer', {}) // Init is over, so that the next one is quick
  const { payload: set } = await invokeToEnd(kiln.lambda, 'timer', { set: true })
  await frozen('timer')
  await waitUntil(() => Date.now() > set + 1200)
  const { payload } = await invoke(kiln.lambda, 'timer', {})
  assert.ok(payload.begun >= set + 1200)
  assert.ok(payload.fired >= set + 600)
  assert.ok(payload.left > 10_000 && payload.left <= 20_000, `${payload.left} ms`)
})

test('a runtime that is killed while frozen is noticed: the next invoke is fine', { skip }, async () => {
  await createPython(kiln.lambda, 'killed')
  await python(kiln.lambda, 'killed', 'open("/tmp/kept", "w").write("kept")')
  for (const pid of await frozen('killed')) process.kill(Number(pid), 'SIGKILL')
  await waitUntil(() => environmentProcesses('killed').length === 0, { what: 'the processes being gone' })
  assert.deepEqual(await python(kiln.lambda, 'killed', 'result = [STATE["invokes"], read("/tmp/kept")]'), [1, 'kept'])
})
