// The service's own client for Node.js (npm package aws-lambda-ric), unchanged, as the bootstrap of a provided runtime.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { InvokeWithResponseStreamCommand } from '@aws-sdk/client-lambda'
import { createFunction, invoke, startKiln, zip } from '../lib/kiln.mjs'

const CLIENT = fileURLToPath(new URL('node_modules/aws-lambda-ric', import.meta.url))
const FUNCTION = `
exports.handler = async (event, context) => {
  if (event.bad) throw new RangeError('boom')
  console.log('seen in the log')
  return { event, id: context.awsRequestId, name: context.functionName, left: context.getRemainingTimeInMillis() > 0 }
}
exports.stream = awslambda.streamifyResponse(async (event, stream) => {
  stream.write('one ')
  stream.end('two')
})
`

/** Everything below a folder of the package, by its path in the function's package. */
function files(folder) {
  const entries = readdirSync(join(CLIENT, folder), { recursive: true }).map((name) => join(folder, name))
  return Object.fromEntries(
    entries
      .filter((name) => statSync(join(CLIENT, name)).isFile())
      .map((name) => [`node_modules/aws-lambda-ric/${name}`, readFileSync(join(CLIENT, name))]),
  )
}

let kiln
before(async () => {
  kiln = await startKiln()
  const ZipFile = zip({
    bootstrap: '#!/bin/sh\nexec node /var/task/node_modules/aws-lambda-ric/bin/index.mjs "$_HANDLER"\n',
    'index.js': FUNCTION,
    'node_modules/aws-lambda-ric/package.json': readFileSync(join(CLIENT, 'package.json')),
    ...files('bin'),
    ...files('dist'),
  })
  for (const name of ['handler', 'stream']) {
    await createFunction(kiln.lambda, {
      FunctionName: name,
      Runtime: 'provided.al2023',
      Handler: `index.${name}`,
      Timeout: 30,
      MemorySize: 256,
      Code: { ZipFile },
    })
  }
})
after(() => kiln.stop())

test('events, context, errors and the log pass through it', async () => {
  for (let i = 0; i < 3; i++) {
    const { payload, functionError, log } = await invoke(kiln.lambda, 'handler', { i }, { LogType: 'Tail' })
    assert.equal(functionError, undefined)
    assert.deepEqual(payload.event, { i })
    assert.match(payload.id, /^[0-9a-f-]{36}$/)
    assert.deepEqual([payload.name, payload.left], ['handler', true])
    assert.match(log, /seen in the log/)
  }
  const { payload, functionError } = await invoke(kiln.lambda, 'handler', { bad: true })
  assert.equal(functionError, 'Unhandled')
  assert.deepEqual([payload.errorType, payload.errorMessage], ['RangeError', 'boom'])
  assert.equal((await invoke(kiln.lambda, 'handler', { i: 9 })).payload.event.i, 9)
})

test('its streamed answers come in pieces', async () => {
  const { EventStream } = await kiln.lambda.send(new InvokeWithResponseStreamCommand({ FunctionName: 'stream' }))
  let text = ''
  let complete
  for await (const event of EventStream) {
    if (event.PayloadChunk) text += Buffer.from(event.PayloadChunk.Payload)
    else complete = event.InvokeComplete
  }
  assert.equal(text, 'one two')
  assert.equal(complete.ErrorCode, undefined)
})
