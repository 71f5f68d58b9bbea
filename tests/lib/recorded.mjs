// Replays recorded sequences (tests/data/recorded/README.md) with the SDK and compares whole answers.
//
//   const replay = new Replay((options) => kiln.client(options), { account: '100000000001', packageFor })
//   for (const [at, step] of steps.entries()) await replay.step(at, step)   // throws where an answer differs
//
// Every sequence runs in an account of its own, which stands for the recorded 111111111111. A look (Get...) that was
// recorded before the state had settled may find it further here; how far it had come is then not compared.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import * as sdk from '@aws-sdk/client-lambda'
import { REPOSITORY, waitUntil, zip } from './kiln.mjs'

const RECORDED_ACCOUNT = '111111111111'
const KIND_WORDS = new Set([
  'lambda-url', 'date', 'datetime', '<datetime>', 'timestamp', '<approximate-creation-datetime>', 'code-sha256', 'log-result',
  '<code-size>', '<location>', '<layer-location>', '<remaining-time-in-millis>', 'maximum-batching-window-in-seconds',
])
const PLACEHOLDER = /<[^<>]+>/g
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const escaped = (text) => text.replace(/[\\^.$|()[\]*+?{}]/g, '\\$&')

/** By name: { steps, ... }, of every file. */
export function recordedSequences() {
  const directory = join(REPOSITORY, 'tests/data/recorded')
  const files = readdirSync(directory).filter((name) => name.endsWith('.json')).sort()
  return Object.assign({}, ...files.map((name) => JSON.parse(readFileSync(join(directory, name)))))
}

/** Was the step recorded so that its answer can be held against another? */
export function isComparable({ service, recorded, link }) {
  if (recorded === null || service) return false
  return link === 'exact' || link === 'part' || (link === 'derived' && typeof recorded.Code === 'string')
}

/** A member by its path: "Payload", "CodeSigningConfigs.0". */
function memberAt(answer, path) {
  return path.split('.').reduce((value, name) => value?.[name], answer)
}

export class Replay {
  answers = []
  #clients = new Map()
  #raw // of the latest answer: { headers, body }

  constructor(makeClient, { account, region = 'us-east-1', packageFor }) {
    this.makeClient = makeClient
    this.account = account
    this.region = region
    this.packageFor = packageFor
    this.bound = new Map([['<partition>', 'aws'], ['<region>', region], ['<wrong-region>', 'eu-central-1']])
  }

  /** Sends one step and compares when it was recorded so; returns the answer. */
  async step(at, step) {
    this.at = `step ${at} (${step.operation})`
    const params = this.#parameters(step)
    const client = this.#clientOf(step.region ?? this.region)
    this.answers[at] = step.poll ? await this.#poll(client, step, params) : await this.#send(client, step.operation, params)
    this.#checkForm(this.answers[at])
    if (isComparable(step) && !isUnsupported(this.answers[at])) this.#compareStep(step, this.answers[at])
    return this.answers[at]
  }

  close() {
    for (const client of this.#clients.values()) client.destroy()
  }

  // --- what is sent ---

  #clientOf(region) {
    if (!this.#clients.has(region)) {
      const client = this.makeClient({ region, credentials: { accessKeyId: this.account, secretAccessKey: 'any' } })
      client.middlewareStack.add((next) => async (args) => this.#keepRaw(await next(args)), { step: 'deserialize', priority: 'low' })
      this.#clients.set(region, client)
    }
    return this.#clients.get(region)
  }

  /** The SDK does not tell everything that came, such as the key of an error's message. */
  async #keepRaw(output) {
    const pieces = []
    for await (const piece of output.response.body) pieces.push(piece)
    const body = Buffer.concat(pieces)
    this.#raw = { headers: output.response.headers, body }
    output.response.body = Readable.from(body.length > 0 ? [body] : [])
    return output
  }

  #localised(value) {
    return JSON.parse(JSON.stringify(value).replaceAll(RECORDED_ACCOUNT, this.account))
  }

  #parameters({ operation, params }) {
    const filled = this.#fill(this.#localised(params))
    if (typeof filled.Payload === 'string') filled.Payload = Buffer.from(filled.Payload)
    const code = operation === 'UpdateFunctionCode' ? filled : filled.Code
    if (typeof code?.ZipFile === 'string') code.ZipFile = Buffer.from(code.ZipFile)
    const timestamp = filled.StartingPositionTimestamp
    if (typeof timestamp === 'string') filled.StartingPositionTimestamp = new Date(Number(timestamp) * 1000)
    return filled
  }

  #fill(value) {
    if (typeof value === 'string') return value.replace(PLACEHOLDER, (name) => this.#valueOf(name))
    if (Array.isArray(value)) return value.map((item) => this.#fill(item))
    if (value === null || typeof value !== 'object') return value
    if (value.$base64) return Buffer.from(value.$base64, 'base64')
    if (value.$bytes) return Buffer.alloc(value.$bytes)
    if (value.$text) return value.begins.padEnd(value.$text - value.ends.length, 'x') + value.ends
    if (value.$zip) return zip(this.packageFor(value))
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, this.#fill(member)]))
  }

  /** What a placeholder of the parameters stands for; one that nothing has bound gets a value made of its name. */
  #valueOf(placeholder) {
    const [, step, member] = placeholder.match(/^<step (\d+): (.*)>$/) ?? []
    if (this.answers[step]?.[member] !== undefined) return this.answers[step][member]
    if (!this.bound.has(placeholder)) this.bound.set(placeholder, placeholder.slice(1, -1).replace(/[:_ ]+/g, '-'))
    return this.bound.get(placeholder)
  }

  async #send(client, operation, params) {
    try {
      const { $metadata, ...answer } = await client.send(new sdk[`${operation}Command`](params))
      if (answer.Payload) answer.Payload = Buffer.from(answer.Payload).toString()
      return { ...answer, ResponseMetadata: { HTTPStatusCode: $metadata.httpStatusCode } }
    } catch (error) {
      if (!error.$metadata?.httpStatusCode) throw error
      return this.#errorAnswer(error)
    }
  }

  /** An error in the form in which errors are recorded: class and text, then the other members of its body. */
  #errorAnswer({ name, message, $metadata }) {
    const body = this.#raw.body.length > 0 ? JSON.parse(this.#raw.body) : {}
    return {
      Error: { Code: name, Message: message === 'UnknownError' ? null : message }, // the SDK's word for no message
      ...body,
      ResponseMetadata: { HTTPStatusCode: $metadata.httpStatusCode },
    }
  }

  /** The clients waited until the state had settled. */
  #poll(client, step, params) {
    const settled = async () => {
      const answer = await this.#send(client, step.operation, params)
      return isSettled(answer) && answer
    }
    return waitUntil(settled, { timeoutMs: 30_000, what: `${this.at}: a settled state` })
  }

  // --- what came back ---

  /** What every answer has, and no recording shows. */
  #checkForm({ Error: error }) {
    const { headers, body } = this.#raw
    assert.match(headers['x-amzn-requestid'] ?? '', UUID, `${this.at}: x-amzn-RequestId`)
    assert.ok(headers.date, `${this.at}: Date`)
    if (body.length > 0) assert.equal(headers['content-type'], 'application/json', `${this.at}: Content-Type`)
    if (error) assert.equal(headers['x-amzn-errortype'], error.Code, `${this.at}: x-amzn-ErrorType`)
  }

  #compareStep(step, answer) {
    let recorded = this.#localised(step.recorded)
    if (step.operation === 'GetAccountSettings') return this.#compareNames(recorded, answer)
    answer = asRecorded(step, recorded, answer)
    if (step.link === 'part') this.#compare(`${this.at}.${step.part}`, recorded, memberAt(answer, step.part))
    else this.#compareAnswer(step, recorded, answer)
  }

  /** Account settings were recorded by the names of their members. */
  #compareNames({ ResponseMetadata: meta, ...recorded }, { ResponseMetadata, ...answer }) {
    assert.equal(ResponseMetadata.HTTPStatusCode, meta.HTTPStatusCode, `${this.at}: status`)
    const names = Object.fromEntries(Object.entries(answer).map(([key, members]) => [key, Object.keys(members).sort()]))
    assert.deepEqual(names, recorded, `${this.at}: members`)
  }

  #compareAnswer({ operation }, recorded, answer) {
    const { ResponseMetadata: meta, ...expected } = recorded
    const { ResponseMetadata, ...actual } = answer
    if (meta?.HTTPStatusCode) assert.equal(ResponseMetadata.HTTPStatusCode, meta.HTTPStatusCode, `${this.at}: status`)
    if (typeof expected.Code === 'string') return this.#compareSummary(expected, actual)
    if (/^Get/.test(operation) && !isSettled(expected)) [expected, actual].forEach(dropProgress)
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
    assert.deepEqual(Object.keys(actual ?? {}).sort(), Object.keys(expected).sort(), `${where}: members of ${JSON.stringify(actual)}`)
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

/** Kiln's own answer for an operation, or a form of one, that it does not support. */
export function isUnsupported({ Error: error }) {
  return error?.Code === 'NotImplementedException'
}

/** The answer in the form of the recording, which dropped what its test did not look at. */
function asRecorded({ operation, part }, recorded, answer) {
  const shown = { ...answer }
  if (operation === 'Invoke' && typeof (part ? recorded : recorded.Payload) === 'object') {
    if (shown.Payload) shown.Payload = JSON.parse(shown.Payload)
  }
  for (const name of ['Policy', 'Statement']) { // recorded taken apart
    if (typeof recorded[name] === 'object' && typeof shown[name] === 'string') shown[name] = JSON.parse(shown[name])
  }
  if (typeof recorded.FilterCriteria?.Filters[0].Pattern === 'object') {
    const taken = shown.FilterCriteria?.Filters.map(({ Pattern }) => ({ Pattern: JSON.parse(Pattern) }))
    shown.FilterCriteria = { Filters: taken }
  }
  if (recorded.Error && recorded.message === undefined && recorded.Message === undefined) {
    delete shown.message
    delete shown.Message
  }
  return shown
}

function isSettled(answer) {
  const { State, LastUpdateStatus, Status } = answer.Configuration ?? answer
  return State !== 'Pending' && LastUpdateStatus !== 'InProgress' && Status !== 'IN_PROGRESS'
}

/** How far a change has come. */
function dropProgress(answer) {
  const shown = answer.Configuration ?? answer
  for (const name of Object.keys(shown)) if (/^(State|LastUpdateStatus|RevisionId$|Status$|Allocated|Available)/.test(name)) delete shown[name]
}
