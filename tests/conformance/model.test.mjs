// Every constraint that the service model states (tests/data/model) is checked by every operation that Kiln supports: a
// request that violates it is a ValidationException which names the member, whatever else there is to say of the request.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { supportedOperations } from '../lib/coverage.mjs'
import { createFunction, pythonZip, REPOSITORY, ROLE, startKiln } from '../lib/kiln.mjs'

const MODEL = JSON.parse(readFileSync(join(REPOSITORY, 'tests/data/model/lambda_inputs.json')))
const ZIP = pythonZip('def handler(event, context):\n    return 1\n')

// Parts of an input that satisfies the model, so that what is violated is the only violation where that matters.
const VALID = {
  FunctionName: 'fn', Name: 'al', FunctionVersion: '1', ReservedConcurrentExecutions: 1, ProvisionedConcurrentExecutions: 1,
}
const VALID_OF = {
  CreateFunction: {
    FunctionName: 'new', Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile: ZIP.toString('base64') },
  },
  UpdateFunctionCode: { FunctionName: 'fn', ZipFile: ZIP.toString('base64') },
}

// Not checked in this form, by "Operation path kind", where either may be *.
const EXCEPTIONS = {
  '* runtime enum': 'the service has a text of its own for runtimes (recorded), as InvalidParameterValueException',
  '* capacityProviderConfig.lambdaManagedInstancesCapacityProviderConfig.executionEnvironmentMemoryGiBPerVCpu maximum':
    'what it belongs to is refused',
  '* capacityProviderConfig.lambdaManagedInstancesCapacityProviderConfig.executionEnvironmentMemoryGiBPerVCpu minimum':
    'likewise',
}
// Limits that are narrower than the model's, which has those of other kinds of functions.
const NARROWER = { 'timeout maximum': 900, 'memorySize maximum': 10240 }

const MATCHES_ANYTHING = new Set(['.*', '[\\s\\S]*'])

const exceptionFor = (operation, path, kind) => EXCEPTIONS[`${operation} ${path} ${kind}`] ?? EXCEPTIONS[`* ${path} ${kind}`]
const lowerFirst = (name) => name[0].toLowerCase() + name.slice(1)

/** ["FileSystemConfigs", "[]", "Arn"] -> "fileSystemConfigs.1.member.arn"; elements themselves go by their list or map. */
function spelled(path) {
  const inside = path.slice(0, path.findLastIndex((part) => !/^[[{]/.test(part)) + 1)
  return inside.map((part) => (part === '[]' ? '1.member' : lowerFirst(part))).join('.')
}

/** A copy of the input with the value at the path; undefined takes the member away. */
function withValue(input, [part, ...rest], value) {
  if (part === undefined) return value
  if (part === '[]') return [withValue({}, rest, value)]
  if (part === '{value}') return { Key1: withValue({}, rest, value) }
  const copy = { ...(input ?? {}) }
  const made = withValue(copy[part], rest, value)
  if (made === undefined) delete copy[part]
  else copy[part] = made
  return copy
}

/** The value of a map's key is the map with that entry. */
function entryOf(operation, path, value) {
  if (path.at(-1) !== '{key}') return [path, value]
  const map = path.slice(0, -1)
  const values = MODEL[operation].members.find(({ path: other }) => `${other}` === `${map},{value}`)
  return [map, { [value]: { double: 0.5, list: ['value'] }[values?.type] ?? 'value' }]
}

/** [kind, value, what the message says] for each way to violate a member's rules. */
function violations({ path, type, required, in: place, min, max, pattern, enum: values }) {
  const cases = []
  const isText = type === 'string'
  const isSegment = place?.startsWith('uri:') // an empty one is another path
  const isElement = path.at(-1) === '[]' || path.at(-1).startsWith('{')
  if (required && !isSegment) cases.push(['required', undefined, 'Member must not be null'])
  if (values) cases.push(['enum', 'NOT_A_VALUE', 'Member must satisfy enum value set: ['])
  if (isText && min > 0 && !isSegment) cases.push(['minLength', '', `Member must have length greater than or equal to ${min}`])
  if (isText && max) cases.push(['maxLength', 'a'.repeat(max + 1), `Member must have length less than or equal to ${max}`])
  if (pattern && !MATCHES_ANYTHING.has(pattern)) cases.push(['pattern', place?.startsWith('header:') ? '#!' : '# !', 'Member must satisfy regular expression pattern: '])
  if (/integer|long|double/.test(type)) {
    if (min !== undefined) cases.push(['minimum', min - 1, `Member must have value greater than or equal to ${min}`])
    const most = NARROWER[`${spelled(path)} maximum`] ?? max
    if (most !== undefined) cases.push(['maximum', most + 1, `Member must have value less than or equal to ${most}`])
  }
  if (type === 'list' && min > 0) cases.push(['fewest', [], `Member must have length greater than or equal to ${min}`])
  if (type === 'list' && max < 100) cases.push(['most', 'list', `Member must have length less than or equal to ${max}`])
  return isElement ? cases.filter(([kind]) => kind !== 'required') : cases
}

let kiln
before(async () => {
  kiln = await startKiln()
  await createFunction(kiln.lambda, { FunctionName: 'fn', Publish: true, Code: { ZipFile: ZIP } })
})
after(() => kiln?.stop())

function validInput(operation) {
  const members = MODEL[operation].members.filter(({ path }) => path.length === 1).map(({ path }) => path[0])
  const known = Object.fromEntries(members.filter((name) => name in VALID).map((name) => [name, VALID[name]]))
  return { ...known, ...VALID_OF[operation] }
}

/** The request for an input, bound as the model says. */
function request({ method, uri, members }, input) {
  const headers = { 'Content-Type': 'application/json' }
  const query = new URLSearchParams(uri.split('?')[1])
  const body = { ...input }
  let path = uri.split('?')[0]
  for (const { path: [name, deeper], in: place } of members) {
    if (!place || deeper || input[name] === undefined) continue
    const [where, as] = place.split(':')
    delete body[name]
    if (where === 'uri') path = path.replace(`{${as}}`, encodeURIComponent(input[name]))
    if (where === 'header') headers[as] = String(input[name])
    if (where === 'querystring') for (const value of [input[name]].flat()) query.append(as, value)
  }
  const hasBody = method === 'POST' || method === 'PUT'
  return [`${path}${query.size ? `?${query}` : ''}`, { method, headers, body: hasBody ? JSON.stringify(body) : undefined }]
}

async function assertViolation(operation, member, [kind, value, text]) {
  const { members } = MODEL[operation]
  const isStructures = kind === 'most' && members.some(({ path }) => path.join().startsWith(`${member.path.join()},[],`))
  const given = kind === 'most' ? Array(member.max + 1).fill(isStructures ? {} : 'x') : value
  const [path, options] = request(MODEL[operation], withValue(validInput(operation), ...entryOf(operation, member.path, given)))
  const answer = await kiln.fetch(path, options)
  const what = `${operation} ${spelled(member.path)} ${kind}`
  const body = await answer.text()
  assert.equal(answer.headers.get('x-amzn-errortype'), 'ValidationException', `${what}: ${answer.status} ${body}`)
  assert.equal(answer.status, 400, what)
  const { message } = JSON.parse(body)
  assert.match(message, /^\d+ validation errors? detected: Value /, what)
  const entry = message.split(/(?<=[^;]); (?=Value )/).find((part) => part.includes(` at '${spelled(member.path)}'`) && part.includes(text))
  assert.ok(entry, `${what}: ${message}`)
}

for (const [operation, isSupported] of supportedOperations()) {
  if (!isSupported || !MODEL[operation]) continue
  test(`${operation} checks what the model states`, async (t) => {
    let checked = 0
    for (const member of MODEL[operation].members) {
      for (const violation of violations(member)) {
        if (exceptionFor(operation, spelled(member.path), violation[0])) continue
        await assertViolation(operation, member, violation)
        checked++
      }
    }
    t.diagnostic(`${checked} constraints`)
  })
}
