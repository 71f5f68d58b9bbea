// Replays recorded sequences (tests/data/recorded/README.md) with the SDK and compares whole answers.
//
//   const replay = new Replay(client, { account: '100000000001', packageFor: ({ $zip, file }) => files })
//   for (const [at, step] of steps.entries()) await replay.step(at, step)   // throws where an answer differs
//
// Every sequence runs in an account of its own, which stands for the recorded 111111111111. `comesLate`: a look that was
// recorded before the state had settled may find it settled here; then all but the state and its revision is compared.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as sdk from '@aws-sdk/client-lambda'
import { REPOSITORY, waitUntil, zip } from './kiln.mjs'

const RECORDED_ACCOUNT = '111111111111'
const KIND_WORDS = new Set(['date', 'datetime', 'timestamp', 'code-sha256', 'log-result', '<code-size>', '<location>', '<remaining-time-in-millis>'])
const PLACEHOLDER = /<[^<>]+>/g
const escaped = (text) => text.replace(/[\\^.$|()[\]*+?{}]/g, '\\$&')

/** By name: { steps, ... }. `corrections`: part of a name -> texts to leave out of that sequence. */
export function recordedSequences(corrections = {}) {
  const read = (name) => JSON.parse(readFileSync(join(REPOSITORY, 'tests/data/recorded', name)))
  const sequences = { ...read('lambda_control_plane.json'), ...read('lambda_invoke.json'), ...read('lambda_provisioned.json') }
  for (const [part, texts] of Object.entries(corrections)) {
    for (const name of Object.keys(sequences).filter((candidate) => candidate.includes(part))) {
      const corrected = texts.reduce((text, wrong) => text.replaceAll(wrong, ''), JSON.stringify(sequences[name]))
      sequences[name] = JSON.parse(corrected)
    }
  }
  return sequences
}

export class Replay {
  answers = []

  constructor(client, { account, region = 'us-east-1', packageFor, comesLate = false }) {
    this.client = client
    this.comesLate = comesLate
    this.account = account
    this.packageFor = packageFor
    this.bound = new Map([['<partition>', 'aws'], ['<region>', region], ['<wrong-region>', 'eu-central-1']])
  }

  /** Sends one step (not one to skip) and, when it was recorded whole, compares; returns whether it was compared. */
  async step(at, step) {
    this.at = `step ${at} (${step.operation})`
    const params = this.#parameters(step)
    this.answers[at] = step.poll ? await this.#poll(step.operation, params) : await this.#send(step.operation, params)
    if (!isComparable(step)) return false
    const recorded = this.#localised(step.recorded)
    if (step.link === 'part') this.#compare(`${this.at}.${step.part}`, recorded, this.answers[at][step.part])
    else this.#compareAnswer(recorded, this.answers[at])
    return true
  }

  // --- what is sent ---

  #localised(value) {
    return JSON.parse(JSON.stringify(value).replaceAll(RECORDED_ACCOUNT, this.account))
  }

  #parameters({ operation, params }) {
    const filled = this.#fill(this.#localised(params))
    if (typeof filled.Payload === 'string') filled.Payload = Buffer.from(filled.Payload)
    const code = operation === 'UpdateFunctionCode' ? filled : filled.Code
    if (typeof code?.ZipFile === 'string') code.ZipFile = Buffer.from(code.ZipFile)
    return filled
  }

  #fill(value) {
    if (typeof value === 'string') return value.replace(PLACEHOLDER, (name) => this.#valueOf(name))
    if (Array.isArray(value)) return value.map((item) => this.#fill(item))
    if (value === null || typeof value !== 'object') return value
    if (value.$base64) return Buffer.from(value.$base64, 'base64')
    if (value.$zip) return zip(this.packageFor(value))
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#fill(member)]))
  }

  /** What a placeholder of the parameters stands for; one that nothing has bound gets a value made of its name. */
  #valueOf(placeholder) {
    const [, step, member] = placeholder.match(/^<step (\d+): (.*)>$/) ?? []
    if (step) return this.answers[step][member]
    if (!this.bound.has(placeholder)) this.bound.set(placeholder, placeholder.slice(1, -1).replace(/[:_]/g, '-'))
    return this.bound.get(placeholder)
  }

  async #send(operation, params) {
    try {
      const { $metadata, ...answer } = await this.client.send(new sdk[`${operation}Command`](params))
      if (answer.Payload) answer.Payload = parsed(Buffer.from(answer.Payload).toString())
      return { ...answer, ResponseMetadata: { HTTPStatusCode: $metadata.httpStatusCode } }
    } catch (error) {
      if (!error.$metadata?.httpStatusCode) throw error
      return errorAnswer(error)
    }
  }

  /** The clients waited until the state had settled. */
  #poll(operation, params) {
    const settled = async () => {
      const answer = await this.#send(operation, params)
      return isSettled(answer) && answer
    }
    return waitUntil(settled, { timeoutMs: 30_000, what: `${this.at}: a settled state` })
  }

  // --- what came back ---

  #compareAnswer(recorded, answer) {
    const { ResponseMetadata: meta, ...expected } = recorded
    const { ResponseMetadata, ...actual } = answer
    if (meta?.HTTPStatusCode) assert.equal(ResponseMetadata.HTTPStatusCode, meta.HTTPStatusCode, `${this.at}: status`)
    if (typeof expected.Code === 'string') return this.#compareSummary(expected, actual)
    // Of an error's message the SDK tells the text, not the key it came under.
    if (expected.Error) {
      delete expected.message
      delete expected.Message
    }
    if (this.comesLate && !isSettled(expected) && isSettled(actual)) [expected, actual].forEach(dropState)
    this.#compare(this.at, expected, actual)
  }

  /** {Code, Message} or {Code, Count, Errors: [...]}: an error with its text taken apart. */
  #compareSummary(expected, { Error: error }) {
    assert.equal(error?.Code, expected.Code, this.at)
    if (!expected.Errors) return this.#compare(`${this.at}.Message`, expected.Message, error.Message)
    const [, count, rest] = error.Message.match(/^(\d+) validation errors? detected: (.*)$/s)
    assert.equal(Number(count), expected.Errors.length, `${this.at}: number of violations`)
    this.#compare(`${this.at}.Errors`, expected.Errors, rest.split(/; (?=Value ')/))
  }

  #compare(where, expected, actual) {
    if (KIND_WORDS.has(expected)) return assert.notEqual(actual, undefined, `${where} is missing`)
    if (typeof expected === 'string' && typeof actual === 'string') return this.#matchText(where, expected, actual)
    if (expected === null || typeof expected !== 'object') return assert.equal(actual, expected, where)
    assert.equal(typeof actual, 'object', `${where}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`)
    assert.deepEqual(Object.keys(actual ?? {}).sort(), Object.keys(expected).sort(), `${where}: members`)
    for (const key of Object.keys(expected)) this.#compare(`${where}.${key}`, expected[key], actual[key])
  }

  #matchText(where, expected, actual) {
    const fresh = [] // placeholders that this text binds, in order of their groups
    let pattern = ''
    let from = 0
    for (const { 0: placeholder, index } of expected.matchAll(PLACEHOLDER)) {
      pattern += escaped(expected.slice(from, index))
      from = index + placeholder.length
      if (placeholder.includes(':len(')) pattern += '.*' // describes the text, names nothing
      else if (this.bound.has(placeholder)) pattern += escaped(this.bound.get(placeholder))
      else if (fresh.includes(placeholder)) pattern += `\\${fresh.indexOf(placeholder) + 1}`
      else pattern += fresh.push(placeholder) && '(.*)'
    }
    const match = actual.match(new RegExp(`^${pattern}${escaped(expected.slice(from))}$`, 's'))
    assert.ok(match, `${where}:\n  expected ${this.#shown(expected)}\n  got      ${actual}`)
    fresh.forEach((placeholder, i) => this.bound.set(placeholder, match[i + 1]))
  }

  #shown(text) {
    return text.replace(PLACEHOLDER, (name) => (this.bound.has(name) ? `${name}=${this.bound.get(name)}` : name))
  }
}

function isComparable({ operation, recorded, link }) {
  if (recorded === null || operation === 'GetAccountSettings') return false // recorded by its members' names only
  return link === 'exact' || link === 'part' || (link === 'derived' && typeof recorded.Code === 'string')
}

function isSettled(answer) {
  const { State, LastUpdateStatus, Status } = answer.Configuration ?? answer
  return State !== 'Pending' && LastUpdateStatus !== 'InProgress' && Status !== 'IN_PROGRESS'
}

function dropState(answer) {
  const configuration = answer.Configuration ?? answer
  for (const name of Object.keys(configuration)) if (/^(State|LastUpdateStatus|RevisionId$)/.test(name)) delete configuration[name]
}

function parsed(text) {
  return text === '' ? '' : JSON.parse(text)
}

/** An exception in the form in which answers are recorded. */
function errorAnswer({ name, message, $metadata, $fault, $response, $service, $retryable, Error: own, Message, ...members }) {
  delete members.stack
  for (const [key, value] of Object.entries(members)) if (value === undefined) delete members[key]
  return {
    Error: { Code: name, Message: message === 'UnknownError' ? null : message }, // the SDK's word for no message
    ...members,
    ResponseMetadata: { HTTPStatusCode: $metadata.httpStatusCode },
  }
}
