// Faults that users of such systems have met, each with what the service does instead. Those about invokes under load
// are in tests/integration, those with a file of their own here are there.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, pythonZip, ROLE, sleep, startKiln, waitUntil, zip } from '../lib/kiln.mjs'
import { openRaw } from '../lib/raw_http.mjs'
import { createProbe, probeZip } from '../lib/probe.mjs'

const ARN = 'arn:aws:lambda:us-east-1:000000000000:function:'
const WAIT = { minDelay: 1, maxDelay: 1, maxWaitTime: 30 }
const source = (value) => pythonZip(`def handler(event, context):\n    return ${value}\n`)
let kiln
let lambda

before(async () => {
  kiln = await startKiln({ env: { FOO_OF_THE_DAEMON: 'bar' } })
  lambda = kiln.lambda
})

after(() => kiln?.stop())

function send(operation, parameters, client = lambda) {
  return client.send(new sdk[`${operation}Command`](parameters))
}

async function refusal(operation, parameters, client) {
  const error = await send(operation, parameters, client).then(() => assert.fail(`${operation} was not refused`), (error) => error)
  return [error.$metadata.httpStatusCode, error.name, error.message]
}

async function update(FunctionName, ZipFile) {
  await send('UpdateFunctionCode', { FunctionName, ZipFile })
  await sdk.waitUntilFunctionUpdatedV2({ client: lambda, ...WAIT }, { FunctionName })
}

// --- reservations ---

test('a reservation of 0 is allowed when the pool is at its minimum, and throttles every call', async () => {
  const client = kiln.client({ region: 'eu-north-1' })
  for (const name of ['A', 'B', 'C']) await createProbe(client, name)
  await send('PutFunctionConcurrency', { FunctionName: 'A', ReservedConcurrentExecutions: 900 }, client)
  await send('PutFunctionConcurrency', { FunctionName: 'B', ReservedConcurrentExecutions: 0 }, client)
  assert.deepEqual(await refusal('PutFunctionConcurrency', { FunctionName: 'C', ReservedConcurrentExecutions: 1 }, client),
    [400, 'InvalidParameterValueException', "Specified ReservedConcurrentExecutions for function decreases account's UnreservedConcurrentExecution below its minimum value of [100]."])
  await assert.rejects(invoke(client, 'B'), { name: 'TooManyRequestsException', Reason: 'ReservedFunctionConcurrentInvocationLimitExceeded' })
  await send('PutFunctionConcurrency', { FunctionName: 'A', ReservedConcurrentExecutions: 850 }, client)
  await send('PutFunctionConcurrency', { FunctionName: 'C', ReservedConcurrentExecutions: 50 }, client)
  client.destroy()
})

test('no reservation is an empty answer, not 0', async () => {
  await createProbe(lambda, 'unreserved')
  const FunctionName = 'unreserved'
  const seen = async () => {
    const { $metadata, ...answer } = await send('GetFunctionConcurrency', { FunctionName })
    return [answer, (await send('GetFunction', { FunctionName })).Concurrency]
  }
  assert.deepEqual(await seen(), [{}, undefined])
  await send('PutFunctionConcurrency', { FunctionName, ReservedConcurrentExecutions: 5 })
  assert.deepEqual(await seen(), [{ ReservedConcurrentExecutions: 5 }, { ReservedConcurrentExecutions: 5 }])
  const { $metadata } = await send('DeleteFunctionConcurrency', { FunctionName })
  assert.equal($metadata.httpStatusCode, 204)
  assert.deepEqual(await seen(), [{}, undefined])
  assert.deepEqual(await refusal('PutFunctionConcurrency', { FunctionName: 'nope', ReservedConcurrentExecutions: 1 }),
    [404, 'ResourceNotFoundException', `Function not found: ${ARN}nope:$LATEST`])
})

test('the request rate of the account bounds functions without reservation together', async (t) => {
  const small = await startKiln({ args: ['--concurrency', '10', '--unreserved-minimum', '1'] })
  t.after(() => small.stop())
  for (const name of ['f1', 'f2']) await createProbe(small.lambda, name)
  const started = Date.now()
  const outcomes = { accepted: 0 }
  const one = async (name) => {
    for (let i = 0; i < 150; i++) {
      await invoke(small.lambda, name).then(() => outcomes.accepted++, ({ Reason }) => (outcomes[Reason] = (outcomes[Reason] ?? 0) + 1))
    }
  }
  await Promise.all([one('f1'), one('f1'), one('f2'), one('f2')])
  const seconds = (Date.now() - started) / 1000
  const { accepted, ...throttled } = outcomes
  assert.ok(accepted <= 100 * (seconds + 1), `${accepted} in ${seconds} s`)
  for (const reason of Object.keys(throttled)) assert.equal(reason, 'FunctionInvocationRateLimitExceeded')
})

// --- versions and aliases ---

test('CodeSha256 and RevisionId guard a publication', async () => {
  const FunctionName = 'guarded'
  await createFunction(lambda, { FunctionName, Code: { ZipFile: source(1) } })
  const { CodeSha256 } = await send('GetFunctionConfiguration', { FunctionName })
  const [status, name, message] = await refusal('PublishVersion', { FunctionName, CodeSha256: 'bad' })
  assert.deepEqual([status, name], [400, 'InvalidParameterValueException'])
  assert.ok(message.includes(CodeSha256) && message.includes('bad'), message)
  assert.equal((await send('PublishVersion', { FunctionName, CodeSha256 })).Version, '1')
  await send('CreateAlias', { FunctionName, Name: 'live', FunctionVersion: '1' })
  const stale = await refusal('UpdateAlias', { FunctionName, Name: 'live', RevisionId: '00000000-0000-0000-0000-000000000000' })
  assert.deepEqual(stale.slice(0, 2), [412, 'PreconditionFailedException'])
  assert.match(stale[2], /Call the GetFunction\/GetAlias API/)
})

test('alias names are checked and a second one of a name is a conflict', async () => {
  const FunctionName = 'aliased'
  await createFunction(lambda, { FunctionName, Code: { ZipFile: source(1) }, Publish: true })
  const create = (Name) => refusal('CreateAlias', { FunctionName, Name, FunctionVersion: '1' })
  for (const name of ['2024', 'a.b', 'a'.repeat(129), '']) assert.deepEqual((await create(name)).slice(0, 2), [400, 'ValidationException'], name)
  await send('CreateAlias', { FunctionName, Name: 'prod', FunctionVersion: '1' })
  assert.deepEqual(await create('prod'), [409, 'ResourceConflictException', `Alias already exists: ${ARN}aliased:prod`])
})

test('a missing alias has the message of each operation', async () => {
  const FunctionName = 'aliased'
  assert.deepEqual(await refusal('GetAlias', { FunctionName, Name: 'zz' }),
    [404, 'ResourceNotFoundException', `Cannot find alias arn: ${ARN}aliased:zz`])
  assert.deepEqual(await refusal('UpdateAlias', { FunctionName, Name: 'zz', FunctionVersion: '1' }),
    [404, 'ResourceNotFoundException', `Alias not found: ${ARN}aliased:zz`])
  for (const operation of ['Invoke', 'GetFunction']) {
    assert.deepEqual(await refusal(operation, { FunctionName, Qualifier: 'zz' }),
      [404, 'ResourceNotFoundException', `Function not found: ${ARN}aliased:zz`])
  }
  assert.equal((await send('DeleteAlias', { FunctionName, Name: 'zz' })).$metadata.httpStatusCode, 204)
})

test('once UpdateAlias has answered, no call of the alias gets the old version', async () => {
  const FunctionName = 'switched'
  await createProbe(lambda, FunctionName, { Publish: true })
  await send('UpdateFunctionConfiguration', { FunctionName, Description: '2' })
  await sdk.waitUntilFunctionUpdatedV2({ client: lambda, ...WAIT }, { FunctionName })
  await send('PublishVersion', { FunctionName })
  await send('CreateAlias', { FunctionName, Name: 'live', FunctionVersion: '1' })
  let going = true
  let target // what every call that starts now must get; undefined while it is being moved
  const callers = Array.from({ length: 4 }, async () => {
    while (going) {
      const moved = target
      const { version } = await invoke(lambda, FunctionName, {}, { Qualifier: 'live' })
      if (moved !== undefined && moved === target) assert.equal(version, moved)
    }
  })
  for (const version of ['2', '1', '2', '1', '2', '1', '2']) {
    target = undefined
    await send('UpdateAlias', { FunctionName, Name: 'live', FunctionVersion: version })
    target = version
    for (let i = 0; i < 10; i++) assert.equal((await invoke(lambda, FunctionName, {}, { Qualifier: 'live' })).version, version)
  }
  going = false
  await Promise.all(callers)
})

test('publishing right after an update is a conflict or the new code, never the old', async () => {
  const FunctionName = 'raced'
  await createFunction(lambda, { FunctionName, Code: { ZipFile: source(0) }, Publish: true })
  for (let i = 1; i <= 20; i++) {
    const { CodeSha256 } = await send('UpdateFunctionCode', { FunctionName, ZipFile: source(i) })
    const published = await send('PublishVersion', { FunctionName }).catch((error) => error)
    if (published instanceof Error) {
      assert.equal(published.name, 'ResourceConflictException')
      assert.equal(published.message, `The operation cannot be performed at this time. An update is in progress for resource: ${ARN}raced`)
      await sdk.waitUntilFunctionUpdatedV2({ client: lambda, ...WAIT }, { FunctionName })
    } else {
      assert.equal(published.CodeSha256, CodeSha256)
    }
  }
})

test('two updates at once: each succeeds or is a conflict, and what is shown is one of the successful', async () => {
  const FunctionName = 'raced'
  await sdk.waitUntilFunctionUpdatedV2({ client: lambda, ...WAIT }, { FunctionName })
  const settled = await Promise.allSettled(
    [11, 12, 13, 14].map((Timeout) => send('UpdateFunctionConfiguration', { FunctionName, Timeout })))
  const done = settled.filter(({ status }) => status === 'fulfilled').map(({ value }) => value.Timeout)
  assert.ok(done.length >= 1)
  for (const { status, reason } of settled) if (status === 'rejected') assert.equal(reason.name, 'ResourceConflictException')
  await sdk.waitUntilFunctionUpdatedV2({ client: lambda, ...WAIT }, { FunctionName })
  assert.ok(done.includes((await send('GetFunctionConfiguration', { FunctionName })).Timeout))
})

test('ListFunctions shows versions only when asked to', async () => {
  const client = kiln.client({ region: 'ap-south-1' })
  await createProbe(client, 'listed', { Publish: true })
  const list = async (parameters) => (await send('ListFunctions', parameters, client)).Functions.map(({ FunctionArn }) => FunctionArn.split(':').slice(6).join(':'))
  assert.deepEqual(await list({}), ['listed'])
  assert.deepEqual(await list({ FunctionVersion: 'ALL' }), ['listed:$LATEST', 'listed:1'])
  const [status, name, message] = await refusal('ListFunctions', { FunctionVersion: 'all' }, client)
  assert.deepEqual([status, name], [400, 'ValidationException'])
  assert.match(message, /Value 'all' at 'functionVersion' failed to satisfy constraint: Member must satisfy enum value set: \[ALL\]/)
  client.destroy()
})

test('MaxItems is 1 to 10000, and a page has at most 50 functions', async () => {
  const client = kiln.client({ region: 'ap-south-2' })
  for (let i = 0; i < 51; i++) {
    await send('CreateFunction', { FunctionName: `f${i}`, Runtime: 'provided.al2023', Handler: 'x', Role: ROLE, Code: { ZipFile: probeZip() } }, client)
  }
  const page = await send('ListFunctions', { MaxItems: 10_000 }, client)
  assert.equal(page.Functions.length, 50)
  assert.ok(page.NextMarker)
  for (const MaxItems of [0, 10_001, -1]) assert.deepEqual((await refusal('ListFunctions', { MaxItems }, client)).slice(0, 2), [400, 'ValidationException'])
  client.destroy()
})

// --- configuration ---

test('the 4 KB of the environment are bytes, and at the limit every value reaches the function', async () => {
  const FunctionName = 'env'
  await createFunction(lambda, { FunctionName, Code: { ZipFile: pythonZip('import os\ndef handler(event, context):\n    return {k: v for k, v in os.environ.items() if k.startswith("V_")}\n') } })
  const put = (Variables) => refusal('UpdateFunctionConfiguration', { FunctionName, Environment: { Variables } })
  assert.match((await put({ V_: '中'.repeat(2000) }))[2], /exceeded the 4KB limit/)
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`V_${i}`, 'abcdefgh']))
  assert.match((await put(many))[2], /exceeded the 4KB limit\. String measured: \{"V_0":"abcdefgh",/)
  const fits = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`V_${i}`, 'wertäöü']))
  await send('UpdateFunctionConfiguration', { FunctionName, Environment: { Variables: fits } })
  await sdk.waitUntilFunctionUpdatedV2({ client: lambda, ...WAIT }, { FunctionName })
  assert.deepEqual((await invoke(lambda, FunctionName)).payload, fits)
})

test('settings out of range are refused', async () => {
  const FunctionName = 'env'
  for (const [parameters, name] of [
    [{ Handler: 'a b' }, 'ValidationException'],
    [{ Role: 'r1' }, 'ValidationException'],
    [{ Runtime: 'PYTHON3.9' }, 'InvalidParameterValueException'],
    [{ MemorySize: 127 }, 'ValidationException'],
  ]) {
    assert.deepEqual((await refusal('UpdateFunctionConfiguration', { FunctionName, ...parameters })).slice(0, 2), [400, name])
  }
  assert.equal((await refusal('UpdateFunctionCode', { FunctionName, ZipFile: source(1), Architectures: ['x86_64', 'arm64'] }))[0], 400)
})

test('code in a bucket that is not there is the error of the service', async () => {
  const parameters = { FunctionName: 's3f', Runtime: 'python3.12', Handler: 'x.y', Role: ROLE, Code: { S3Bucket: 'none', S3Key: 'k' } }
  const [status, name, message] = await refusal('CreateFunction', parameters)
  assert.deepEqual([status, name], [400, 'InvalidParameterValueException'])
  assert.match(message, /^Error occurred while GetObject\. S3 Error Code: NoSuchBucket\. S3 Error Message: /)
})

// --- invokes that go wrong ---

test('a process that exits or is killed is told at once, with how it ended', async () => {
  const code = `import os, signal
def handler(event, context):
    if event == 9:
        os.kill(os.getpid(), 9)
    os._exit(event)
`
  await createFunction(lambda, { FunctionName: 'exits', Code: { ZipFile: pythonZip(code) }, Timeout: 60 })
  const requestId = /^RequestId: [0-9a-f-]{36} Error: /
  for (const [event, text] of [
    [0, 'Runtime exited without providing a reason'], [1, 'Runtime exited with error: exit status 1'],
    [127, 'Runtime exited with error: exit status 127'], [9, 'Runtime exited with error: signal: killed'],
  ]) {
    const { payload, functionError, status } = await invoke(lambda, 'exits', event)
    assert.deepEqual([status, functionError, payload.errorType], [200, 'Unhandled', 'Runtime.ExitError'])
    assert.match(payload.errorMessage, requestId)
    assert.equal(payload.errorMessage.replace(requestId, ''), text)
  }
})

test('a failing Init is an answer, tried again with every call', async () => {
  await createFunction(lambda, { FunctionName: 'broken', Code: { ZipFile: pythonZip('raise Exception("Runtime startup fails")\n') } })
  for (let i = 0; i < 2; i++) {
    const { payload, functionError, status } = await invoke(lambda, 'broken')
    assert.deepEqual([status, functionError], [200, 'Unhandled'])
    assert.equal(payload.errorMessage, 'Runtime startup fails')
    assert.equal(payload.errorType, 'Exception')
    assert.equal(payload.requestId, '')
    assert.ok(Array.isArray(payload.stackTrace))
  }
})

test('a bootstrap that is not there or cannot run is told at once, with the reason', async () => {
  for (const [name, files, text] of [
    ['nothing', { other: 'x' }, /./],
    ['mode', { bootstrap: { content: '#!/bin/sh\n', mode: 0o644 } }, /permission denied/i],
    ['interpreter', { bootstrap: '#!/no/such/interpreter\n' }, /no such file/i],
    ['format', { bootstrap: Buffer.from([0x7f, 0x45, 0x4c, 0x46, 1, 2, 3, 4]) }, /exec format error/i],
  ]) {
    const FunctionName = `bootstrap-${name}`
    await createFunction(lambda, { FunctionName, Runtime: 'provided.al2023', Handler: 'x', Timeout: 60, Code: { ZipFile: zip(files) } })
    const { payload, functionError } = await invoke(lambda, FunctionName)
    assert.equal(functionError, 'Unhandled')
    assert.equal(payload.errorType, 'Runtime.InvalidEntrypoint', name)
    assert.match(payload.errorMessage, text, name)
  }
})

test('a file that only its owner may read is not readable inside', async () => {
  const archive = zip({ 'index.py': { content: 'def handler(event, context):\n    return 1\n', mode: 0o600 } })
  await createFunction(lambda, { FunctionName: 'owned', Code: { ZipFile: archive } })
  const { payload, functionError } = await invoke(lambda, 'owned')
  assert.equal(functionError, 'Unhandled')
  assert.match(payload.errorMessage, /Permission denied|Unable to import module/)
})

test('the function sees the name, version and ARN it was called by, and no variable of others', async () => {
  const code = `import os
def handler(event, context):
    return [context.invoked_function_arn, os.environ["AWS_LAMBDA_FUNCTION_VERSION"], os.environ["AWS_LAMBDA_FUNCTION_NAME"],
            sorted(os.environ)]
`
  const parameters = { Code: { ZipFile: pythonZip(code) }, Publish: true }
  await createFunction(lambda, { FunctionName: 'secretive', ...parameters, Environment: { Variables: { SECRET: '1' } } })
  await createFunction(lambda, { FunctionName: 'curious', ...parameters })
  await send('CreateAlias', { FunctionName: 'curious', Name: 'live', FunctionVersion: '1' })
  assert.ok((await invoke(lambda, 'secretive')).payload[3].includes('SECRET'))
  for (const [Qualifier, version] of [[undefined, '$LATEST'], ['$LATEST', '$LATEST'], ['1', '1'], ['live', '1']]) {
    const [arn, seen, name, variables] = (await invoke(lambda, 'curious', {}, { Qualifier })).payload
    assert.equal(arn, `${ARN}curious${Qualifier ? `:${Qualifier}` : ''}`)
    assert.deepEqual([seen, name], [version, 'curious'])
    assert.ok(!variables.includes('SECRET') && !variables.includes('FOO_OF_THE_DAEMON'))
  }
})

// --- clients and packages ---

test('slow senders and slow readers hold nobody up and no unit', async () => {
  await createFunction(lambda, { FunctionName: 'big', MemorySize: 256, Timeout: 30, Code: { ZipFile: pythonZip('def handler(event, context):\n    return "a" * event\n') } })
  const path = '/2015-03-31/functions/big/invocations'
  const idle = []
  for (let i = 0; i < 50; i++) {
    const { socket } = await openRaw(kiln.port)
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n1`)
    idle.push(socket)
  }
  for (let i = 0; i < 10; i++) {
    const { socket } = await openRaw(kiln.port)
    socket.pause()
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n5000000`)
    idle.push(socket)
  }
  const concurrency = async () => (await (await kiln.fetch('/_kiln/health')).json()).concurrency
  await sleep(200)
  await waitUntil(async () => (await concurrency()) === 0, { timeoutMs: 60_000, what: 'the end of the invokes, though nobody reads' })
  for (let i = 0; i < 20; i++) assert.equal((await invoke(lambda, 'big', 3)).payload, 'aaa')
  assert.equal(await concurrency(), 0)
  const status = readFileSync(`/proc/${kiln.pid}/status`, 'utf8')
  assert.ok(Number(status.match(/VmRSS:\s+(\d+)/)[1]) < 400_000, status)
  idle.forEach((socket) => socket.destroy())
})

test('an ARN in the path may be percent-encoded or not', async () => {
  const body = '2'
  for (const name of [`${ARN}big`, encodeURIComponent(`${ARN}big`), 'big%3A%24LATEST', 'big:$LATEST']) {
    const answer = await kiln.fetch(`/2015-03-31/functions/${name}/invocations`, { method: 'POST', body })
    assert.equal(await answer.text(), '"aa"', name)
  }
})

test('an archive of 200,000 files is refused, and nothing is hurt', async () => {
  // Made by Python: its entries are stored, many and small.
  const archive = execFileSync('python3', ['-c', `
import io, sys, zipfile
f = io.BytesIO()
z = zipfile.ZipFile(f, 'w')
for i in range(200000): z.writestr('f%d' % i, '')
z.close()
sys.stdout.buffer.write(f.getvalue())`], { maxBuffer: 1 << 28 })
  assert.deepEqual(await refusal('UpdateFunctionCode', { FunctionName: 'big', ZipFile: archive }),
    [400, 'InvalidParameterValueException', 'Could not unzip uploaded file. Please check your file, then try to upload again.'])
  assert.equal((await invoke(lambda, 'big', 1)).payload, 'a')
})

test('names with a drive, a NUL, 300 bytes or no UTF-8 stay inside or are refused', async () => {
  const withName = (name) => {
    const archive = zip({ ['N'.repeat(Buffer.byteLength(name))]: 'x', 'index.py': 'def handler(event, context):\n    return 1\n' })
    const bytes = Buffer.from(name)
    for (let at = archive.indexOf('NNN'); at >= 0; at = archive.indexOf('NNN', at + 1)) bytes.copy(archive, at)
    return archive
  }
  for (const name of ['C:\\windows\\x', 'a\0b', 'n'.repeat(300)]) {
    await update('big', withName(name)).catch((error) => assert.equal(error.name, 'InvalidParameterValueException'))
  }
  assert.equal((await kiln.fetch('/_kiln/health')).status, 200)
})
