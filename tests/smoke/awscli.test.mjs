// The tour of the README, step by step, with the aws CLI as its users have it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { invoke as invokeBySdk, ROLE, startKiln, temporaryDirectory, zip } from '../lib/kiln.mjs'

const AWS = existsSync('/usr/bin/aws') ? '/usr/bin/aws' : 'aws' // Debian's, whatever else is on the PATH
const run = promisify(execFile)
let kiln
let directory

before(async () => {
  kiln = await startKiln()
  directory = temporaryDirectory()
})

after(async () => {
  await kiln?.stop()
  if (directory) rmSync(directory, { recursive: true, force: true })
})

const aws = (...words) => awsOf('lambda', ...words)

// The answer, parsed. The CLI's own retries would hide a throttle.
async function awsOf(service, ...words) {
  const { stdout } = await run(AWS, ['--endpoint-url', kiln.endpoint, '--output', 'json', service, ...words], {
    cwd: directory,
    env: {
      PATH: process.env.PATH,
      HOME: directory,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_MAX_ATTEMPTS: '1',
      AWS_PAGER: '',
    },
  })
  return stdout.trim() ? JSON.parse(stdout) : undefined
}

async function invoke(name, event, ...words) {
  const file = join(directory, `answer-${Math.random()}.json`)
  const payload = ['--cli-binary-format', 'raw-in-base64-out', '--payload', JSON.stringify(event)]
  const answer = await aws('invoke', '--function-name', name, ...payload, ...words, file)
  return { ...answer, payload: JSON.parse(readFileSync(file)) }
}

async function create(name, runtime, handler, files) {
  writeFileSync(join(directory, `${name}.zip`), zip(files))
  const answer = await aws('create-function', '--function-name', name, '--runtime', runtime, '--handler', handler,
    '--role', ROLE, '--timeout', '30', '--zip-file', `fileb://${name}.zip`)
  await aws('wait', 'function-active-v2', '--function-name', name)
  return answer
}

test('a Python function is created and answers', async () => {
  const source = 'import time\ndef handler(event, context):\n    print("hello from the log")\n    time.sleep(event.get("sleep", 0))\n    return {"hello": event.get("name")}\n'
  const created = await create('hello', 'python3.12', 'index.handler', { 'index.py': source })
  assert.equal(created.State, 'Pending')
  const answer = await invoke('hello', { name: 'world' }, '--log-type', 'Tail')
  assert.equal(answer.StatusCode, 200)
  assert.deepEqual(answer.payload, { hello: 'world' })
  const log = Buffer.from(answer.LogResult, 'base64').toString()
  assert.match(log, /^START RequestId: .*hello from the log\n.*REPORT RequestId: /s)
})

test('a shell script is a runtime', async () => {
  const bootstrap = `#!/bin/sh
while :; do
    event=$(curl -sS -D /tmp/headers "http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation/next")
    id=$(tr -d '\\r' </tmp/headers | sed -n 's/^lambda-runtime-aws-request-id: //Ip')
    curl -sS -o /dev/null -d "{\\"shell\\": $event}" "http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation/$id/response"
done
`
  await create('shell', 'provided.al2023', 'none', { bootstrap })
  assert.deepEqual((await invoke('shell', { a: 1 })).payload, { shell: { a: 1 } })
  assert.deepEqual((await invoke('shell', { a: 2 })).payload, { shell: { a: 2 } })
})

test('versions are published and an alias weighs two of them', async () => {
  assert.equal((await aws('publish-version', '--function-name', 'hello')).Version, '1')
  writeFileSync(join(directory, 'two.zip'), zip({ 'index.py': 'def handler(event, context):\n    return 2\n' }))
  await aws('update-function-code', '--function-name', 'hello', '--zip-file', 'fileb://two.zip')
  await aws('wait', 'function-updated-v2', '--function-name', 'hello')
  assert.equal((await aws('publish-version', '--function-name', 'hello')).Version, '2')
  const alias = await aws('create-alias', '--function-name', 'hello', '--name', 'prod', '--function-version', '1',
    '--routing-config', 'AdditionalVersionWeights={2=0.5}')
  assert.deepEqual(alias.RoutingConfig, { AdditionalVersionWeights: { 2: 0.5 } })
  const versions = new Set()
  for (let i = 0; i < 100 && versions.size < 2; i++) versions.add((await invoke('hello:prod', {})).ExecutedVersion)
  assert.deepEqual([...versions].sort(), ['1', '2'])
  assert.equal((await invoke('hello', {}, '--qualifier', '1')).ExecutedVersion, '1')
})

test('one more than the reserved concurrency is throttled', async () => {
  await aws('put-function-concurrency', '--function-name', 'hello', '--reserved-concurrent-executions', '1')
  const holder = invokeBySdk(kiln.lambda, 'hello:1', { name: 'holder', sleep: 15 }) // longer than the CLI takes to start
  await assert.rejects(invoke('hello:1', {}), /An error occurred \(TooManyRequestsException\) when calling the Invoke operation.*: Rate Exceeded\./)
  await aws('delete-function-concurrency', '--function-name', 'hello')
  assert.deepEqual((await invoke('hello:1', { name: 'other' })).payload, { hello: 'other' })
  assert.deepEqual((await holder).payload, { hello: 'holder' })
})

test('tools learn who they are, and make a role', async () => {
  assert.equal((await awsOf('sts', 'get-caller-identity')).Account, '000000000000')
  const trust = JSON.stringify({ Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }] })
  const { Role: role } = await awsOf('iam', 'create-role', '--role-name', 'smoke', '--assume-role-policy-document', trust)
  assert.equal(role.AssumeRolePolicyDocument.Statement[0].Action, 'sts:AssumeRole')
})

test('functions are listed and deleted', async () => {
  const names = async () => (await aws('list-functions')).Functions.map((item) => item.FunctionName).sort()
  assert.deepEqual(await names(), ['hello', 'shell'])
  await aws('delete-function', '--function-name', 'hello')
  assert.deepEqual(await names(), ['shell'])
  await assert.rejects(aws('get-function', '--function-name', 'hello'), /ResourceNotFoundException/)
})
