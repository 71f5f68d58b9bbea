// The log files of functions under DATA/logs (src/worker/log_record.h tells their form).
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from './kiln.mjs'

/** The records of one log file: { time, message } each, messages as bytes. */
export function records(bytes) {
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

/** Every log stream of a group, as file names and records: { name, records }. */
export function streams(kiln, group) {
  const folder = join(kiln.dataDir, 'logs', group.replaceAll('/', '~'))
  let files
  try {
    files = readdirSync(folder).sort()
  } catch {
    return []
  }
  return files.map((file) => ({ name: file, records: records(readFileSync(join(folder, file))) }))
}

/** The events of a group as texts, one after the other, once `condition(texts)` holds. */
export async function eventsOf(kiln, group, condition) {
  let texts
  return waitUntil(() => {
    texts = streams(kiln, group).flatMap((stream) => stream.records.map(({ message }) => message.toString()))
    return condition(texts) ? texts : undefined
  }, { what: `the events of ${group} (${texts?.length} so far)` })
}

/** All that a function has logged, once that word is among it. */
export async function logHas(kiln, name, word) {
  const texts = await eventsOf(kiln, `/aws/lambda/${name}`, (texts) => texts.join('').includes(word))
  return texts.join('')
}
