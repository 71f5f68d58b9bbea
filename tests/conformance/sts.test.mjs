// STS as tools use it to learn who they are, and what becomes of requests for services that Kiln does not have.
import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { GetCallerIdentityCommand, GetSessionTokenCommand, STSClient } from '@aws-sdk/client-sts'
import { startKiln, temporaryDirectory } from '../lib/kiln.mjs'

let kiln
let strict
let directory

before(async () => {
  directory = temporaryDirectory()
  const file = join(directory, 'credentials')
  writeFileSync(file, '[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = secret\naws_account_id = 111122223333\n')
  kiln = await startKiln()
  strict = await startKiln({ args: ['--auth', 'sigv4', '--credentials', file] })
})

after(async () => {
  await kiln?.stop()
  await strict?.stop()
  rmSync(directory, { recursive: true, force: true })
})

function client(daemon, accessKeyId = 'test', secretAccessKey = 'secret') {
  return new STSClient({
    endpoint: daemon.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 1,
  })
}

async function identity(daemon, ...key) {
  const { Account, Arn, UserId } = await client(daemon, ...key).send(new GetCallerIdentityCommand({}))
  return { Account, Arn, UserId }
}

const who = (account) => ({ Account: account, Arn: `arn:aws:iam::${account}:root`, UserId: account })

test('the account is that of the access key', async () => {
  assert.deepEqual(await identity(kiln), who('000000000000'))
  assert.deepEqual(await identity(kiln, '222222222222'), who('222222222222'))
  assert.deepEqual(await identity(strict, 'AKIDEXAMPLE'), who('111122223333'))
})

test('an unknown key and a wrong signature are refused in the words of the query protocol', async () => {
  await assert.rejects(identity(strict, 'AKIDOTHER'), (error) => {
    assert.equal(error.name, 'InvalidClientTokenId')
    assert.equal(error.$metadata.httpStatusCode, 403)
    return true
  })
  await assert.rejects(identity(strict, 'AKIDEXAMPLE', 'wrong'), { name: 'SignatureDoesNotMatch' })
})

const form = (daemon, parameters, headers = {}) =>
  daemon.fetch('/', { method: 'POST', body: new URLSearchParams(parameters), headers })

test('a form that nobody signed is known by the version of its API', async () => {
  const parameters = { Action: 'GetCallerIdentity', Version: '2011-06-15' }
  const posted = await form(kiln, parameters)
  assert.equal(posted.status, 200)
  assert.equal(posted.headers.get('content-type'), 'text/xml')
  assert.match(await posted.text(), /<Account>000000000000<\/Account>/)
  const got = await kiln.fetch(`/?${new URLSearchParams(parameters)}`)
  assert.match(await got.text(), /<GetCallerIdentityResponse xmlns="https:\/\/sts\.amazonaws\.com\/doc\/2011-06-15\/">/)
  const refused = await form(strict, parameters)
  assert.equal(refused.status, 403)
  assert.match(await refused.text(), /<Code>MissingAuthenticationToken<\/Code>/)
})

test('the answer is JSON for who accepts that alone', async () => {
  const answer = await form(kiln, { Action: 'GetCallerIdentity', Version: '2011-06-15' }, { accept: 'application/json' })
  const { GetCallerIdentityResponse: body } = await answer.json()
  assert.deepEqual(body.GetCallerIdentityResult, who('000000000000'))
  assert.equal(body.ResponseMetadata.RequestId, answer.headers.get('x-amzn-requestid'))
})

test('an action that is not there is named', async () => {
  await assert.rejects(client(kiln).send(new GetSessionTokenCommand({})), (error) => {
    assert.equal(error.name, 'NotImplementedException')
    assert.equal(error.message, 'Kiln does not support the action GetSessionToken of AWS STS.')
    assert.equal(error.$metadata.httpStatusCode, 501)
    return true
  })
  const without = await form(kiln, { Version: '2011-06-15' })
  assert.equal(without.status, 400)
  assert.match(await without.text(), /<Code>MissingAction<\/Code>/)
  const broken = await kiln.fetch('/?Action=%4&Version=2011-06-15', {
    headers: { authorization: 'AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/sts/aws4_request, SignedHeaders=host, Signature=0' },
  })
  assert.equal(broken.status, 400)
  assert.match(await broken.text(), /<Code>MalformedQueryString<\/Code>/)
})

test('a service that is not there is named, in the protocol of the request', async () => {
  const authorization = (service) =>
    `AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=0`
  const query = await form(kiln, { Action: 'ListTopics', Version: '2010-03-31' }, { authorization: authorization('sns') })
  assert.equal(query.status, 501)
  assert.match(await query.text(), /<Message>Kiln does not have the service "sns"\.<\/Message>/)
  const json = await kiln.fetch('/', {
    method: 'POST',
    body: '{}',
    headers: { authorization: authorization('sqs'), 'x-amz-target': 'AmazonSQS.ListQueues' },
  })
  assert.equal(json.status, 501)
  assert.deepEqual(await json.json(), {
    __type: 'NotImplementedException',
    message: 'Kiln does not have the service "sqs".',
  })
  const unsigned = await form(kiln, { Action: 'ListTopics', Version: '2010-03-31' })
  assert.match(await unsigned.text(), /Kiln does not have the service whose API has the version "2010-03-31"\./)
})
