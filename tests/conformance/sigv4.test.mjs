// The daemon with --auth sigv4: who signs rightly gets in, everybody else gets the service's own answers.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, pythonZip, startKiln, temporaryDirectory } from '../lib/kiln.mjs'
import { exchangeRaw } from '../lib/raw_http.mjs'
import { presign, sign, timestamp } from '../lib/sigv4.mjs'

const KEY = 'AKIDEXAMPLE'
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const LIST = '/2015-03-31/functions'
const SOURCE = 'def handler(event, context):\n    return event\n'
let kiln
let client
let host
let directory

before(async () => {
  directory = temporaryDirectory()
  const file = join(directory, 'credentials')
  writeFileSync(file, `[default]
aws_access_key_id = ${KEY}
aws_secret_access_key = ${SECRET}

[other]
aws_access_key_id = AKIDOTHER
aws_secret_access_key = secret
aws_account_id = 333333333333

[session]
aws_access_key_id = ASIASESSION
aws_secret_access_key = secret
aws_session_token = the-token
`)
  kiln = await startKiln({ args: ['--auth', 'sigv4', '--credentials', file] })
  host = `127.0.0.1:${kiln.port}`
  client = kiln.client({ credentials: { accessKeyId: KEY, secretAccessKey: SECRET } })
  await createFunction(client, { FunctionName: 'signed', Code: { ZipFile: pythonZip(SOURCE) } })
})

after(async () => {
  client?.destroy()
  await kiln?.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function request(headers, { method = 'GET', target = LIST, body = '' } = {}) {
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return exchangeRaw(kiln.port, `${method} ${target} HTTP/1.1\r\n${lines}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

function signed(overrides = {}) {
  return sign({ method: 'GET', path: LIST, host, key: KEY, secret: SECRET, ...overrides })
}

function assertDenied(answer, code, message) {
  assert.equal(answer.status, 403, answer.text)
  assert.equal(answer.headers['x-amzn-errortype'], code)
  assert.match(answer.headers['x-amzn-requestid'], /^[0-9a-f-]{36}$/)
  const error = answer.json()
  assert.match(error.message ?? error.Message, message)
}

test('the SDK signs, and every kind of request passes', async () => {
  assert.deepEqual((await invoke(client, 'signed', { ä: '€' })).payload, { ä: '€' })
  assert.deepEqual((await invoke(client, 'signed:$LATEST', 1, { Qualifier: '$LATEST' })).payload, 1)
  const arn = 'arn:aws:lambda:us-east-1:000000000000:function:signed'
  assert.equal((await client.send(new sdk.GetFunctionCommand({ FunctionName: arn }))).Configuration.FunctionArn, arn)
  const { Code } = await client.send(new sdk.GetFunctionCommand({ FunctionName: 'signed' }))
  assert.equal((await fetch(Code.Location)).status, 200, 'the URL of the code carries its own token')
  const large = 'x'.repeat(3_000_000)
  assert.equal((await invoke(client, 'signed', large)).payload, large)
})

test('a signature made by hand passes, with and without x-amz-content-sha256', async () => {
  assert.equal((await request(signed())).status, 200)
  assert.equal((await request(signed({ extra: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }))).status, 200)
  assert.equal((await request(signed({ time: timestamp(-14 * 60) }))).status, 200)
})

test('an account of the credentials file is a world of its own', async () => {
  const answer = await request(signed({ key: 'AKIDOTHER', secret: 'secret' }))
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.json().Functions, [])
})

test('a session token must be the right one', async () => {
  const session = { key: 'ASIASESSION', secret: 'secret' }
  assert.equal((await request(signed({ ...session, extra: { 'x-amz-security-token': 'the-token' } }))).status, 200)
  const text = /^The security token included in the request is invalid\.$/
  assertDenied(await request(signed({ ...session, extra: { 'x-amz-security-token': 'another' } })), 'UnrecognizedClientException', text)
  assertDenied(await request(signed(session)), 'UnrecognizedClientException', text)
})

test('a request without signature is refused, before its body is read', async () => {
  assertDenied(await request({}), 'MissingAuthenticationTokenException', /^Missing Authentication Token$/)
  const unread = await exchangeRaw(kiln.port, `POST ${LIST} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 50000000\r\n\r\n`)
  assertDenied(unread, 'MissingAuthenticationTokenException', /^Missing Authentication Token$/)
})

test('a malformed signature is refused with what it lacks', async () => {
  const { authorization } = signed()
  const cases = {
    'AWS4-HMAC-SHA256 nonsense': /'nonsense' not a valid key=value pair/,
    [authorization.replace(/Signature=\w+/, '')]: /Authorization header requires 'Signature' parameter/,
    [authorization.replace(/SignedHeaders=[^,]+,/, '')]: /Authorization header requires 'SignedHeaders' parameter/,
    [authorization.replace(/Credential=[^,]+,/, '')]: /Authorization header requires 'Credential' parameter/,
    [authorization.replace('/aws4_request', '')]: /Credential/,
    'Basic dXNlcjpwYXNz': /./,
  }
  for (const [value, text] of Object.entries(cases)) {
    const answer = await request({ ...signed(), authorization: value })
    assert.equal(answer.status, 403, value)
    assert.match(answer.headers['x-amzn-errortype'], /^(IncompleteSignatureException|MissingAuthenticationTokenException|InvalidSignatureException)$/)
    const error = answer.json()
    assert.match(error.message ?? error.Message, text)
  }
})

test('an unknown key is refused, before its body is read', async () => {
  const text = /^The security token included in the request is invalid\.$/
  assertDenied(await request(signed({ key: 'AKIDNOBODY' })), 'UnrecognizedClientException', text)
  const headers = sign({ method: 'POST', path: LIST, host, key: 'AKIDNOBODY', secret: 'x' })
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const unread = await exchangeRaw(kiln.port, `POST ${LIST} HTTP/1.1\r\nHost: ${host}\r\n${lines}Content-Length: 50000000\r\n\r\n`)
  assertDenied(unread, 'UnrecognizedClientException', text)
})

const MISMATCH = /^The request signature we calculated does not match the signature you provided\. Check your AWS Secret Access Key and signing method\. Consult the service documentation for details\./

test('a wrong secret, method, path, query, header or body does not match', async () => {
  assertDenied(await request(signed({ secret: 'wrong' })), 'InvalidSignatureException', MISMATCH)
  assertDenied(await request(signed(), { method: 'DELETE', target: `${LIST}/signed` }), 'InvalidSignatureException', MISMATCH)
  assertDenied(await request(signed(), { target: `${LIST}/signed` }), 'InvalidSignatureException', MISMATCH)
  assertDenied(await request(signed(), { target: `${LIST}?MaxItems=1` }), 'InvalidSignatureException', MISMATCH)
  assertDenied(await request({ ...signed({ extra: { 'x-amz-log-type': 'None' } }), 'x-amz-log-type': 'Tail' }), 'InvalidSignatureException', MISMATCH)
  const path = `${LIST}/signed/invocations`
  const headers = sign({ method: 'POST', path, host, key: KEY, secret: SECRET, body: '{"a":1}' })
  assert.equal((await request(headers, { method: 'POST', target: path, body: '{"a":1}' })).status, 200)
  assertDenied(await request(headers, { method: 'POST', target: path, body: '{"a":2}' }), 'InvalidSignatureException', MISMATCH)
})

test('a body that is not what x-amz-content-sha256 says is refused', async () => {
  const path = `${LIST}/signed/invocations`
  const extra = { 'x-amz-content-sha256': 'a'.repeat(64) }
  const headers = sign({ method: 'POST', path, host, key: KEY, secret: SECRET, extra })
  const answer = await request(headers, { method: 'POST', target: path, body: '{"a":1}' })
  assert.equal(answer.status, 403)
  assert.equal(answer.headers['x-amzn-errortype'], 'InvalidSignatureException')
})

test('signatures are good for 15 minutes either way', async () => {
  assertDenied(await request(signed({ time: timestamp(-16 * 60) })), 'InvalidSignatureException',
    /^Signature expired: \d{8}T\d{6}Z is now earlier than \d{8}T\d{6}Z \(\d{8}T\d{6}Z - 15 min\.\)$/)
  assertDenied(await request(signed({ time: timestamp(16 * 60) })), 'InvalidSignatureException',
    /^Signature not yet current: \d{8}T\d{6}Z is still later than \d{8}T\d{6}Z \(\d{8}T\d{6}Z \+ 15 min\.\)$/)
})

test('the scope must be of this service', async () => {
  const answer = await request(signed({ service: 's3' }))
  assert.equal(answer.status, 403)
  assert.match(answer.text, /Credential should be scoped to correct service: 'lambda'/)
})

test('a presigned URL works until it expires, and as it was signed only', async () => {
  const url = (overrides = {}) => presign({ method: 'GET', path: LIST, host, key: KEY, secret: SECRET, ...overrides })
  const answer = await request({}, { target: `${LIST}?${url()}` })
  assert.equal(answer.status, 200)
  assert.equal(answer.json().Functions.length, 1)
  assert.equal((await request({}, { target: `${LIST}?${url({ time: timestamp(-120) })}` })).status, 403)
  assert.equal((await request({}, { target: `${LIST}?${url()}&MaxItems=1` })).status, 403)
  assert.equal((await request({}, { target: `${LIST}/signed?${url()}`, method: 'DELETE' })).status, 403)
  assert.equal((await request({}, { target: `${LIST}?${url({ secret: 'x' })}` })).status, 403)
})

test('nothing of all this has changed anything', async () => {
  const { Functions } = await client.send(new sdk.ListFunctionsCommand({}))
  assert.deepEqual(Functions.map(({ FunctionName }) => FunctionName), ['signed'])
})
