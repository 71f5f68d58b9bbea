import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ARN, startRuntime } from '../lib/runtime_api.mjs'

const node = (t, source, options) => startRuntime(t, 'nodejs', { 'index.mjs': source }, options)
const returns = (expression) => `export const handler = async (event, context) => (${expression})\n`

async function result(t, source, event, options) {
  const runtime = await node(t, source, options)
  return { ...(await runtime.invoke(event)), runtime }
}

test('event goes in and result comes out as JSON', async (t) => {
  const event = { text: 'grüß 漢字 😀', list: [1, 2.5, null, true], nested: { a: {} } }
  const { kind, payload, headers } = await result(t, returns('event'), event)
  assert.equal(kind, 'response')
  assert.deepEqual(payload, event)
  assert.equal(headers['content-type'], 'application/json')
})

test('many invocations share one process and one connection', async (t) => {
  const runtime = await node(t, 'let n = 0\nexport const handler = async () => ++n\n')
  for (let i = 1; i <= 50; i++) assert.equal((await runtime.invoke()).payload, i)
  assert.equal(runtime.connections, 1)
})

test('events and results of 6 MB pass unchanged', async (t) => {
  const event = { data: 'é'.repeat(3_000_000) }
  assert.equal((await result(t, returns('event'), event)).payload.data, event.data)
})

test('undefined becomes null', async (t) => {
  assert.equal((await result(t, returns('undefined'))).text, 'null')
})

test('result that cannot be JSON is an Error of the service\'s text', async (t) => {
  const { kind, payload } = await result(t, returns('({ n: 1n })'))
  assert.equal(kind, 'error')
  assert.equal(payload.errorType, 'Error')
  assert.equal(payload.errorMessage, 'Unable to stringify response body')
})

test('exception of the handler is reported and logged, and the next invocation works', async (t) => {
  const runtime = await node(t, 'export const handler = async () => { throw new RangeError("boom") }\n')
  const { kind, payload, headers, id } = await runtime.invoke()
  assert.equal(kind, 'error')
  assert.deepEqual(Object.keys(payload), ['errorType', 'errorMessage', 'trace'])
  assert.equal(payload.errorType, 'RangeError')
  assert.equal(payload.errorMessage, 'boom')
  assert.equal(payload.trace[0], 'RangeError: boom')
  assert.match(payload.trace[1], /index\.mjs:1:\d+\)?$/)
  assert.equal(headers['lambda-runtime-function-error-type'], 'RangeError')
  const [time, logged, level, title, json] = runtime.log.trimEnd().split('\t')
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual([logged, level, title], [id, 'ERROR', 'Invoke Error '])
  assert.deepEqual(JSON.parse(json), { errorType: 'RangeError', errorMessage: 'boom', stack: payload.trace })
  assert.equal((await runtime.invoke()).kind, 'error')
})

test('a thrown string is reported by its type', async (t) => {
  const { payload } = await result(t, 'export const handler = async () => { throw "boom" }\n')
  assert.deepEqual(payload, { errorType: 'string', errorMessage: 'boom', trace: [] })
})

test('synchronous exception is reported like a rejection', async (t) => {
  const { kind, payload } = await result(t, 'export const handler = () => { throw new Error("boom") }\n')
  assert.deepEqual([kind, payload.errorType, payload.errorMessage], ['error', 'Error', 'boom'])
})

const initErrors = [
  ['missing module', 'nothere.handler', '', 'Runtime.ImportModuleError', /^Error: Cannot find module 'nothere'\nRequire stack:/],
  ['missing function', 'index.nothere', '', 'Runtime.HandlerNotFound', /^index\.nothere is undefined or not exported$/],
  ['something that is no function', 'index.handler', 'export const handler = 1', 'Runtime.HandlerNotFound', /^index\.handler is not a function$/],
  ['handler without a dot', 'index', '', 'Runtime.MalformedHandlerName', /^Bad handler$/],
  ['handler with ..', '../index.handler', '', 'Runtime.MalformedHandlerName', /^'\.\.\/index\.handler' is not a valid handler name\. Use absolute paths/],
  ['syntax error', 'index.handler', 'export const handler = (\n', 'Runtime.UserCodeSyntaxError', /^SyntaxError: Unexpected end of input$/],
  ['exception during import', 'index.handler', 'throw new TypeError("boom")', 'TypeError', /^boom$/],
  ['missing dependency of an ES module', 'index.handler', 'import "nothere"', 'Error', /^Cannot find package 'nothere' imported from /],
]
for (const [name, handler, source, errorType, message] of initErrors) {
  test(`${name} is ${errorType}`, async (t) => {
    const runtime = await node(t, source, { handler })
    const { kind, payload, headers } = await runtime.invoke()
    assert.equal(kind, 'init-error')
    assert.equal(payload.errorType, errorType)
    assert.match(payload.errorMessage, message)
    assert.equal(headers['lambda-runtime-function-error-type'], errorType)
    assert.equal((await runtime.exited).code, 129)
    assert.match(runtime.log, new RegExp(`\\tundefined\\tERROR\\tUncaught Exception \\t{"errorType":"${errorType}"`))
  })
}

test('missing dependency of a CommonJS module is Runtime.ImportModuleError', async (t) => {
  const runtime = await startRuntime(t, 'nodejs', { 'index.js': 'require("nothere")' })
  const { payload } = await runtime.invoke()
  assert.equal(payload.errorType, 'Runtime.ImportModuleError')
  assert.match(payload.errorMessage, /^Error: Cannot find module 'nothere'\nRequire stack:\n- .*\/index\.js/)
})

const layouts = [
  ['CommonJS .js', { 'index.js': 'exports.handler = async () => "ok"' }],
  ['CommonJS .cjs', { 'index.cjs': 'exports.handler = async () => "ok"' }],
  ['ES module .js', { 'package.json': '{"type":"module"}', 'index.js': 'export const handler = async () => "ok"' }],
  ['top-level await', { 'index.mjs': 'const ok = await Promise.resolve("ok")\nexport const handler = async () => ok' }],
  ['folder', { 'src/app.js': 'exports.handler = async () => "ok"' }, 'src/app.handler'],
  ['nested property', { 'index.js': 'exports.a = { b: { handler: async () => "ok" } }' }, 'index.a.b.handler'],
  ['package of node_modules', { 'node_modules/pkg/index.js': 'exports.handler = async () => "ok"' }, 'pkg.handler'],
  ['dependency', { 'index.js': 'exports.handler = async () => require("dep")', 'node_modules/dep/index.js': 'module.exports = "ok"' }],
]
for (const [name, files, handler] of layouts) {
  test(`${name} is loaded`, async (t) => {
    const runtime = await startRuntime(t, 'nodejs', files, { handler })
    const outcome = await runtime.invoke()
    assert.equal(outcome.payload, 'ok', outcome.text)
  })
}

test('context has everything and shows as recorded', async (t) => {
  const source = `export const handler = async (event, context) => {
    const left = context.getRemainingTimeInMillis()
    return { context, left, methods: ['done', 'succeed', 'fail'].map((name) => typeof context[name]) }
  }`
  const runtime = await node(t, source)
  const client = { custom: { foo: 'bär' }, client: { snap: ['crackle', 'pop'] }, env: { fizz: 'buzz' } }
  const headers = { 'Lambda-Runtime-Client-Context': Buffer.from(JSON.stringify(client)).toString('latin1') }
  const { payload, id } = await runtime.invoke({}, { headers })
  assert.deepEqual(payload.context, {
    callbackWaitsForEmptyEventLoop: true,
    functionVersion: '$LATEST',
    functionName: 'hello',
    memoryLimitInMB: '128',
    logGroupName: '/aws/lambda/hello',
    logStreamName: '2026/01/02/[$LATEST]0123456789abcdef0123456789abcdef',
    clientContext: client,
    invokedFunctionArn: ARN,
    awsRequestId: id,
  })
  assert.ok(payload.left > 20_000 && payload.left <= 30_000)
  assert.deepEqual(payload.methods, ['function', 'function', 'function'])
})

test('callback answers, and waits for the event loop to be empty', async (t) => {
  const source = `export const handler = (event, context, callback) => {
    globalThis.fired ??= []
    context.callbackWaitsForEmptyEventLoop = event.wait
    setTimeout(() => globalThis.fired.push(event.wait), 100)
    callback(null, globalThis.fired)
  }`
  const runtime = await node(t, source)
  assert.deepEqual((await runtime.invoke({ wait: true })).payload, [true])
  assert.deepEqual((await runtime.invoke({ wait: false })).payload, [true])
})

test('callback with an error fails the invocation', async (t) => {
  const { kind, payload } = await result(t, 'export const handler = (e, c, callback) => callback(new Error("boom"))')
  assert.deepEqual([kind, payload.errorMessage], ['error', 'boom'])
})

test('only the first answer counts', async (t) => {
  const source = 'export const handler = (e, context, callback) => { context.done(null, 1); callback(null, 2); context.fail("x") }'
  const runtime = await node(t, source)
  for (let i = 0; i < 3; i++) assert.equal((await runtime.invoke()).payload, 1)
})

test('methods of the context answer', async (t) => {
  const runtime = await node(t, 'export const handler = (event, context) => { context[event.method](event.value) }')
  assert.equal((await runtime.invoke({ method: 'succeed', value: 5 })).payload, 5)
  assert.deepEqual((await runtime.invoke({ method: 'fail', value: 'no' })).payload, { errorType: 'string', errorMessage: 'no', trace: [] })
  assert.deepEqual((await runtime.invoke({ method: 'fail' })).payload, { errorType: 'string', errorMessage: 'handled', trace: [] })
  assert.equal((await runtime.invoke({ method: 'done' })).text, 'null')
})

test('handler that never calls back gives null when nothing is left to do', async (t) => {
  const runtime = await node(t, 'export const handler = () => { setTimeout(() => {}, 10) }')
  assert.equal((await runtime.invoke()).text, 'null')
  assert.equal((await runtime.invoke()).text, 'null')
})

test('promise that never settles is Runtime.NodeJsExit', async (t) => {
  const runtime = await node(t, 'export const handler = async () => new Promise(() => {})')
  assert.equal((await runtime.invoke()).payload.errorType, 'Runtime.NodeJsExit')
  assert.equal((await runtime.invoke()).payload.errorType, 'Runtime.NodeJsExit')
})

test('callback handlers are refused from nodejs24.x on', async (t) => {
  const source = 'export const handler = (event, context, callback) => callback()'
  const { kind, payload } = await result(t, source, {}, { env: { AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x' } })
  assert.deepEqual([kind, payload.errorType], ['init-error', 'Runtime.CallbackHandlerDeprecated'])
})

test('uncaught exception fails the invocation and ends the process with 129', async (t) => {
  const runtime = await node(t, 'export const handler = () => { setTimeout(() => { throw new Error("boom") }, 10) }')
  const { kind, payload } = await runtime.invoke()
  assert.deepEqual([kind, payload.errorType, payload.errorMessage], ['error', 'Error', 'boom'])
  assert.equal((await runtime.exited).code, 129)
  assert.match(runtime.log, /\tERROR\tUncaught Exception \t\{"errorType":"Error","errorMessage":"boom"/)
})

test('unhandled rejection fails the invocation and ends the process with 128', async (t) => {
  const source = 'export const handler = async () => { Promise.reject(new Error("boom")); await new Promise((r) => setTimeout(r, 1000)) }'
  const { kind, payload, runtime } = await result(t, source)
  assert.deepEqual([kind, payload.errorType, payload.errorMessage], ['error', 'Runtime.UnhandledPromiseRejection', 'Error: boom'])
  assert.equal((await runtime.exited).code, 128)
  assert.match(runtime.log, /\tERROR\tUnhandled Promise Rejection \t\{"errorType":"Runtime\.UnhandledPromiseRejection"/)
})

test('process.exit in the handler ends the process with its status', async (t) => {
  for (const code of [0, 7]) {
    const runtime = await node(t, `export const handler = async () => process.exit(${code})`)
    assert.deepEqual(await runtime.invoke(), { kind: 'exit', code, signal: null })
  }
})

test('console lines carry time, request id and level', async (t) => {
  const source = `console.log('init')
  export const handler = async () => {
    console.debug('a %d', 1); console.info({ b: 2 }); console.warn('c'); console.error('d'); console.log('e', 'f')
  }`
  const { id, runtime } = await result(t, source)
  await runtime.stop()
  const lines = runtime.log.trimEnd().split('\n').map((line) => line.split('\t').slice(1))
  assert.deepEqual(lines, [
    ['undefined', 'INFO', 'init'],
    [id, 'DEBUG', 'a 1'],
    [id, 'INFO', '{ b: 2 }'],
    [id, 'WARN', 'c'],
    [id, 'ERROR', 'd'],
    [id, 'INFO', 'e f'],
  ])
})

test('log level of the configuration applies', async (t) => {
  const source = 'export const handler = async () => { console.info("hidden"); console.error("shown") }'
  const { runtime } = await result(t, source, {}, { env: { AWS_LAMBDA_LOG_LEVEL: 'ERROR' } })
  await runtime.stop()
  assert.doesNotMatch(runtime.log, /hidden/)
  assert.match(runtime.log, /\tERROR\tshown\n/)
})

test('trace id of each invocation is in the environment', async (t) => {
  const runtime = await node(t, returns('process.env._X_AMZN_TRACE_ID'))
  assert.equal((await runtime.invoke({}, { headers: { 'Lambda-Runtime-Trace-Id': 'Root=1' } })).payload, 'Root=1')
  assert.equal((await runtime.invoke({}, { headers: { 'Lambda-Runtime-Trace-Id': '' } })).payload, null)
})

test('a dropped connection is opened again', async (t) => {
  const runtime = await node(t, returns('1'))
  await runtime.invoke()
  runtime.server.closeAllConnections()
  assert.equal((await runtime.invoke()).payload, 1)
  assert.equal(runtime.connections, 2)
})

test('a connection that is reset is opened again', async (t) => {
  const runtime = await node(t, returns('1'))
  await runtime.invoke()
  await runtime.reset()
  assert.equal((await runtime.invoke()).payload, 1)
  assert.equal(runtime.connections, 2)
})

test('process ends when the Runtime API goes away', async (t) => {
  const runtime = await node(t, returns('1'))
  await runtime.invoke()
  runtime.server.close()
  runtime.server.closeAllConnections()
  assert.equal((await runtime.exited).code, 129)
})

test('JSON log: one argument as it is, several formatted, errors with their own members', async (t) => {
  const source = `export const handler = async () => {
    console.log({ a: 1 })
    console.log('n=%d', 7)
    console.error(Object.assign(new RangeError('bad'), { code: 5 }))
    console.warn('two', new TypeError('worse'))
    const circle = {}; circle.circle = circle
    console.log(circle)
    console.log(10n)
    console.log()
  }`
  const { id, runtime } = await result(t, source, {}, { env: { AWS_LAMBDA_LOG_FORMAT: 'JSON' } })
  await runtime.stop()
  const lines = runtime.log.trimEnd().split('\n').map((line) => JSON.parse(line))
  assert.ok(lines.every(({ requestId }) => requestId === id))
  const [object, formatted, error, two, circle, big, nothing] = lines
  assert.deepEqual([object.level, object.message], ['INFO', { a: 1 }])
  assert.equal(formatted.message, 'n=7')
  assert.deepEqual({ ...error.message, stackTrace: 0 }, { errorType: 'RangeError', errorMessage: 'bad', stackTrace: 0, code: 5 })
  assert.deepEqual([two.level, two.errorType, two.errorMessage], ['WARN', 'TypeError', 'worse'])
  assert.match(circle.message, /Circular/)
  assert.equal(big.message, '10n')
  assert.deepEqual([nothing.level, nothing.message], ['INFO', ''])
})

test('with a descriptor for it, each call of console is one frame, also a large one', async (t) => {
  const source = `export const handler = async () => {
    console.warn('a\\nb'); console.log('x'.repeat(300000)); process.stdout.write('plain\\n')
    return process.env._LAMBDA_TELEMETRY_LOG_FD ?? 'gone'
  }`
  const { payload, runtime } = await result(t, source, {}, { env: { _LAMBDA_TELEMETRY_LOG_FD: '1' }, encoding: 'latin1' })
  assert.equal(payload, 'gone')
  await runtime.stop()
  const bytes = Buffer.from(runtime.log, 'latin1')
  assert.equal(bytes.readUInt32BE(0), 0xa55a0013)
  const length = bytes.readUInt32BE(4)
  assert.match(bytes.toString('utf8', 16, 16 + length), /\tWARN\ta\nb\n$/)
  const next = 16 + length
  assert.equal(bytes.readUInt32BE(next), 0xa55a000f)
  assert.ok(bytes.readUInt32BE(next + 4) > 300000)
  assert.equal(bytes.toString('utf8', next + 16 + bytes.readUInt32BE(next + 4)), 'plain\n')
})
