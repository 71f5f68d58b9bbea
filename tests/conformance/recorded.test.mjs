// Every recorded sequence once more, over HTTP and with the SDK. Whole answers must be as recorded; what the recorded
// functions did when they were invoked is done here by functions of our own.
//
// Where an answer differs and has to, recorded_exceptions.json says why (docs/api-coverage.md shows it). An exception
// that is not needed any more fails. A sequence ends at its first operation that Kiln does not support yet; which those
// are is what docs/api-coverage.md says, so that a sequence goes on as soon as the operation is there.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { supportedOperations } from '../lib/coverage.mjs'
import { isComparable, isUnsupported, recordedSequences, Replay } from '../lib/recorded.mjs'
import { packagesOf } from '../lib/recorded_functions.mjs'
import { IS_ROOT, REPOSITORY, startKiln } from '../lib/kiln.mjs'

// What the host must have for an exception not to apply: such an exception is only about hosts without it.
const HOST_HAS = { root: IS_ROOT }

/**
 * { sequences?, operation?, type?, service?, host?, target?, reason }: parts of names of sequences (default all),
 * and of these the steps of that operation (and InvocationType) or service; without both the whole sequence. `host`: only
 * where the host lacks that; `target`: a request of that service, which Kiln refuses as unknown.
 */
const EXCEPTIONS = JSON.parse(readFileSync(join(REPOSITORY, 'tests/conformance/recorded_exceptions.json')))
  .filter(({ host }) => !host || !HOST_HAS[host])
  .map((exception) => ({ ...exception, needed: 0, notNeeded: [] }))
const SEQUENCES = Object.entries(recordedSequences())
const SUPPORTED = supportedOperations()

const isWhole = ({ operation, service }) => !operation && !service
const isAbout = ({ sequences }, name) => !sequences || sequences.some((part) => name.includes(part))

function exceptionFor(name, step) {
  const isAboutStep = ({ service, operation, type }) => (!service || service === step.service)
    && (!operation || operation === step.operation) && (!type || type === step.params.InvocationType)
  return EXCEPTIONS.find((exception) => !isWhole(exception) && isAbout(exception, name) && isAboutStep(exception))
}

let kiln
before(async () => {
  // Updates last long enough for a machine under load to send the recorded conflicts.
  kiln = await startKiln({ args: ['--update-time', '10000', ...(IS_ROOT ? ['--network', 'none'] : [])] })
})
after(() => kiln?.stop())

describe('recorded sequences', { concurrency: 4 }, () => {
  const table = {} // by operation
  const waiting = {} // operations that are not supported yet -> how many sequences end there

  after(() => {
    console.log('steps by operation (sent: their answers were not recorded)')
    console.table(Object.fromEntries(Object.entries(table).sort()))
    console.log('operations that are not supported yet, and how many sequences end there')
    console.table(waiting)
  })

  function count(step, column) {
    const name = step.service ? `${step.service}: ${step.operation}` : step.operation
    table[name] ??= { identical: 0, exceptions: 0, 'not supported yet': 0, different: 0, sent: 0 }
    table[name][column]++
  }

  /** Sends and compares; returns whether to go on with the sequence. */
  async function replayStep(replay, name, at, step, exceptionForAll) {
    const exception = exceptionFor(name, step)
    if (step.service && !step.skip) {
      assert.ok(exception, `step ${at}: no exception says why ${step.service} is left out`)
      count(step, 'exceptions')
    }
    if (step.service || step.skip) return true
    let answer
    try {
      answer = await replay.step(at, step)
    } catch (error) {
      count(step, exception || exceptionForAll ? 'exceptions' : 'different')
      if (!exception) throw error
      exception.needed++
      return true
    }
    return isUnsupported(answer) ? endsUnsupported(step, exception) : wasIdentical(name, step, exception)
  }

  function endsUnsupported(step, exception) {
    const { operation } = step
    count(step, exception ? 'exceptions' : 'not supported yet')
    if (exception) return !(exception.needed += 1)
    assert.equal(SUPPORTED.get(operation), false, `docs/api-coverage.md does not say that ${operation} is not supported`)
    waiting[operation] = (waiting[operation] ?? 0) + 1
    return false
  }

  function wasIdentical(name, step, exception) {
    if (isComparable(step)) count(step, 'identical')
    else count(step, 'sent')
    if (exception && isComparable(step)) exception.notNeeded.push(name)
    return true
  }

  async function replayAll(name, account, steps, exceptionForAll) {
    const replay = new Replay((options) => kiln.client(options), { account, packageFor: packagesOf(name) })
    const last = steps.findLastIndex(isComparable) // nothing is shown by what comes after it
    try {
      for (const [at, step] of steps.entries()) if (at > last || !(await replayStep(replay, name, at, step, exceptionForAll))) break
    } finally {
      replay.close()
    }
  }

  /** A sequence that is known to differ somewhere. */
  async function replayDiffering(name, account, steps, exception) {
    try {
      await replayAll(name, account, steps, exception)
    } catch {
      exception.needed++
      return
    }
    exception.notNeeded.push(name)
  }

  SEQUENCES.forEach(([name, { steps }], index) => {
    const account = String(100_000_000_001 + index)
    const exception = EXCEPTIONS.find((candidate) => isWhole(candidate) && isAbout(candidate, name))
    if (!exception) return test(name, () => replayAll(name, account, steps))
    console.log(`excepted: ${name}: ${exception.reason}`)
    test(`${name} (excepted)`, () => replayDiffering(name, account, steps, exception))
  })
})

describe('exceptions', () => {
  test('are about sequences that there are', () => {
    for (const { sequences = [] } of EXCEPTIONS)
      for (const part of sequences) assert.ok(SEQUENCES.some(([name]) => name.includes(part)), part)
  })

  test('are needed', () => {
    for (const { reason, needed, notNeeded } of EXCEPTIONS)
      assert.ok(needed > 0 || notNeeded.length === 0, `identical without the exception "${reason}": ${notNeeded.join(', ')}`)
  })

  for (const { service, target } of EXCEPTIONS.filter((exception) => exception.target)) {
    test(`${service} is not served`, async () => {
      const headers = { 'X-Amz-Target': target, 'Content-Type': 'application/x-amz-json-1.0' }
      const answer = await kiln.fetch('/', { method: 'POST', headers, body: '{}' })
      assert.equal(answer.status, 404)
    })
  }
})
