import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { ARN, startRuntime } from '../lib/runtime_api.mjs'

const python = (t, source, options) => startRuntime(t, 'python', { 'index.py': source }, options)
const returns = (expression) => `def handler(event, context):\n    return ${expression}\n`

async function result(t, source, event, options) {
  const runtime = await python(t, source, options)
  return { ...(await runtime.invoke(event)), runtime }
}

test('event goes in and result comes out as JSON', async (t) => {
  const event = { text: 'grüß 漢字 😀', list: [1, 2.5, null, true], nested: { a: {} } }
  const { kind, payload, text, headers } = await result(t, returns('event'), event)
  assert.equal(kind, 'response')
  assert.deepEqual(payload, event)
  assert.equal(headers['content-type'], 'application/json')
  assert.match(text, /"text": "grüß 漢字 😀"/)
})

test('many invocations share one process and one connection', async (t) => {
  const runtime = await python(t, 'n = 0\ndef handler(event, context):\n    global n\n    n += 1\n    return n\n')
  for (let i = 1; i <= 50; i++) assert.equal((await runtime.invoke()).payload, i)
  assert.equal(runtime.connections, 1)
})

test('events and results of 6 MB pass unchanged', async (t) => {
  const event = { data: 'é'.repeat(3_000_000) }
  const { payload } = await result(t, returns('event'), event)
  assert.equal(payload.data, event.data)
})

test('scalars, null and strings are results too', async (t) => {
  const runtime = await python(t, 'def handler(event, context):\n    return eval(event)\n')
  const cases = { None: null, True: true, 3: 3, '"a\\nb"': 'a\nb', '1.5': 1.5, '[]': [], '(1, 2)': [1, 2], '{1: 2}': { 1: 2 } }
  for (const [expression, expected] of Object.entries(cases)) {
    assert.deepEqual((await runtime.invoke(expression)).payload, expected)
  }
})

test('bytes are sent as they are', async (t) => {
  const { body, headers } = await result(t, returns('bytes(range(256))'))
  assert.deepEqual(body, Buffer.from(Array.from({ length: 256 }, (_, i) => i)))
  assert.equal(headers['content-type'], 'application/unknown')
})

test('Decimal becomes a number and NaN stays NaN', async (t) => {
  const source = 'from decimal import Decimal\n' + returns("{'a': Decimal('1.10'), 'b': [Decimal('2'), 'x'], 'c': Decimal('nan'), 'd': float('inf')}")
  assert.equal((await result(t, source)).text, '{"a": 1.10, "b": [2, "x"], "c": NaN, "d": Infinity}')
})

test('before Python 3.12 the service escapes what is not ASCII', async (t) => {
  const { text } = await result(t, returns("'é'"), {}, { env: { AWS_EXECUTION_ENV: 'AWS_Lambda_python3.11' } })
  assert.equal(text, '"\\u00e9"')
})

test('a lone surrogate is escaped, not fatal', async (t) => {
  assert.equal((await result(t, returns("'a\\ud800'"))).text, '"a\\ud800"')
})

test('result that is not JSON serializable is a MarshalError', async (t) => {
  const { kind, payload, headers, runtime } = await result(t, returns('{1, 2}'))
  assert.equal(kind, 'error')
  assert.equal(payload.errorType, 'Runtime.MarshalError')
  assert.equal(payload.errorMessage, 'Unable to marshal response: Object of type set is not JSON serializable')
  assert.deepEqual(payload.stackTrace, [])
  assert.equal(headers['lambda-runtime-function-error-type'], 'Runtime.MarshalError')
  assert.match(runtime.log, /^\[ERROR\] Runtime\.MarshalError: Unable to marshal response: Object of type set/m)
})

test('circular result and impossible keys are MarshalErrors', async (t) => {
  const runtime = await python(t, 'def handler(event, context):\n    a = []\n    a.append(a)\n    return a if event else {(1,): 2}\n')
  assert.equal((await runtime.invoke(1)).payload.errorMessage, 'Unable to marshal response: Circular reference detected')
  assert.equal((await runtime.invoke(0)).payload.errorMessage,
    'Unable to marshal response: keys must be str, int, float, bool or None, not tuple')
})

test('event that is not JSON is an UnmarshalError', async (t) => {
  const runtime = await python(t, returns('event'))
  const { payload } = await runtime.invoke(Buffer.from('{"a":'))
  assert.equal(payload.errorType, 'Runtime.UnmarshalError')
  assert.match(payload.errorMessage, /^Unable to unmarshal input: /)
  assert.deepEqual((await runtime.invoke(Buffer.from(' {"a": NaN} \n'))).text, '{"a": NaN}')
})

test('exception of the handler has the recorded shape, and the next invocation works', async (t) => {
  const runtime = await python(t, 'def handler(event, context):\n    raise Exception("Handler fails")\n')
  const { kind, payload, id, headers } = await runtime.invoke()
  assert.equal(kind, 'error')
  assert.deepEqual(payload, {
    errorMessage: 'Handler fails',
    errorType: 'Exception',
    requestId: id,
    stackTrace: [`  File "${runtime.directory}/index.py", line 2, in handler\n    raise Exception("Handler fails")\n`],
  })
  assert.deepEqual(Object.keys(payload), ['errorMessage', 'errorType', 'requestId', 'stackTrace'])
  assert.equal(headers['lambda-runtime-function-error-type'], 'Exception')
  assert.equal(
    runtime.log,
    '[ERROR] Exception: Handler fails\nTraceback (most recent call last):\n' +
      `\u00a0\u00a0File "${runtime.directory}/index.py", line 2, in handler\n` +
      '\u00a0\u00a0\u00a0\u00a0raise Exception("Handler fails")\n',
  )
  assert.equal((await runtime.invoke()).kind, 'error')
})

test('exception during import has the recorded shape and ends the process', async (t) => {
  const runtime = await python(t, 'raise Exception("Runtime startup fails")\n')
  const { kind, payload } = await runtime.invoke()
  assert.equal(kind, 'init-error')
  assert.equal(payload.errorMessage, 'Runtime startup fails')
  assert.equal(payload.errorType, 'Exception')
  assert.equal(payload.requestId, '')
  assert.match(payload.stackTrace[0], /importlib\/__init__\.py", line \d+, in import_module\n    return _bootstrap\._gcd_import/)
  assert.equal(payload.stackTrace.at(-1),
    `  File "${runtime.directory}/index.py", line 1, in <module>\n    raise Exception("Runtime startup fails")\n`)
  assert.deepEqual(await runtime.exited, { code: 1, signal: null })
})

const initErrors = [
  ['missing module', 'nothere.handler', '', 'Runtime.ImportModuleError', "Unable to import module 'nothere': No module named 'nothere'"],
  ['missing dependency', 'index.handler', 'import nothere\n', 'Runtime.ImportModuleError', "Unable to import module 'index': No module named 'nothere'"],
  ['missing name in a dependency', 'index.handler', 'from os import nothere\n', 'Runtime.ImportModuleError', /^Unable to import module 'index': cannot import name 'nothere' from 'os'/],
  ['missing function', 'index.nothere', '', 'Runtime.HandlerNotFound', "Handler 'nothere' missing on module 'index'"],
  ['handler without a dot', 'index', '', 'Runtime.MalformedHandlerName', "Bad handler 'index': not enough values to unpack (expected 2, got 1)"],
  ['built-in module', 'sys.exit', '', 'Runtime.BuiltInModuleConflict', 'Cannot use built-in module sys as a handler module'],
  ['syntax error', 'index.handler', 'def handler(:\n', 'Runtime.UserCodeSyntaxError', "Syntax error in module 'index': invalid syntax (index.py, line 1)"],
]
for (const [name, handler, source, errorType, message] of initErrors) {
  test(`${name} is ${errorType}`, async (t) => {
    const runtime = await python(t, source, { handler })
    const { kind, payload, headers } = await runtime.invoke()
    assert.equal(kind, 'init-error')
    assert.equal(payload.errorType, errorType)
    if (message instanceof RegExp) assert.match(payload.errorMessage, message)
    else assert.equal(payload.errorMessage, message)
    assert.equal(payload.requestId, '')
    assert.equal(headers['lambda-runtime-function-error-type'], errorType)
    assert.equal((await runtime.exited).code, 1)
    assert.ok(runtime.log.startsWith(`[ERROR] ${errorType}: `), runtime.log)
  })
}

test('syntax error shows the line', async (t) => {
  const runtime = await python(t, 'def handler(:\n')
  const { payload } = await runtime.invoke()
  assert.deepEqual(payload.stackTrace, [`  File "${runtime.directory}/index.py" Line 1\n    def handler(:\n`])
})

test('handlers in folders and packages are found', async (t) => {
  for (const handler of ['src/app.handler', 'src.app.handler', 'src/deep/app.handler']) {
    const files = { 'src/app.py': returns('__name__'), 'src/deep/app.py': returns('__name__') }
    const runtime = await startRuntime(t, 'python', files, { handler })
    assert.equal((await runtime.invoke()).payload, handler.replaceAll('/', '.').replace(/\.handler$/, ''))
  }
})

test('context has everything', async (t) => {
  const source = `
def handler(event, context):
    assert 0 < context.get_remaining_time_in_millis() <= 30000
    return {name: getattr(context, name) for name in (
        'aws_request_id', 'function_name', 'function_version', 'invoked_function_arn', 'memory_limit_in_mb',
        'log_group_name', 'log_stream_name', 'client_context')} | {
        'cognito_identity_id': context.identity.cognito_identity_id, 'repr': repr(context)}
`
  const { payload, id } = await result(t, source)
  assert.deepEqual({ ...payload, repr: undefined }, {
    aws_request_id: id,
    function_name: 'hello',
    function_version: '$LATEST',
    invoked_function_arn: ARN,
    memory_limit_in_mb: '128',
    log_group_name: '/aws/lambda/hello',
    log_stream_name: '2026/01/02/[$LATEST]0123456789abcdef0123456789abcdef',
    client_context: null,
    cognito_identity_id: null,
    repr: undefined,
  })
  assert.ok(payload.repr.startsWith(`LambdaContext([aws_request_id=${id},log_group_name=/aws/lambda/hello,`))
})

test('client context and identity are objects', async (t) => {
  const runtime = await python(t, returns(`[context.client_context.custom['foo'], context.client_context.env,
    context.client_context.client.app_title, context.client_context.client.installation_id,
    context.identity.cognito_identity_id, context.identity.cognito_identity_pool_id]`))
  const { payload } = await runtime.invoke({}, { headers: {
    'Lambda-Runtime-Client-Context': '{"custom":{"foo":"bar"},"client":{"app_title":"t"},"env":{"a":"b"}}',
    'Lambda-Runtime-Cognito-Identity': '{"cognitoIdentityId":"i","cognitoIdentityPoolId":"p"}',
  } })
  assert.deepEqual(payload, ['bar', { a: 'b' }, 't', null, 'i', 'p'])
})

test('client context that is not JSON is reported', async (t) => {
  const runtime = await python(t, returns('1'))
  const { payload } = await runtime.invoke({}, { headers: { 'Lambda-Runtime-Client-Context': '{' } })
  assert.equal(payload.errorType, 'Runtime.LambdaContextUnmarshalError')
  assert.match(payload.errorMessage, /^Unable to parse Client Context JSON: /)
})

test('trace id of each invocation is in the environment', async (t) => {
  const runtime = await python(t, 'import os\n' + returns("os.environ.get('_X_AMZN_TRACE_ID')"))
  assert.equal((await runtime.invoke({}, { headers: { 'Lambda-Runtime-Trace-Id': 'Root=1' } })).payload, 'Root=1')
  assert.equal((await runtime.invoke({}, { headers: { 'Lambda-Runtime-Trace-Id': '' } })).payload, null)
})

test('print is in the log before the result, with and without a final newline', async (t) => {
  const runtime = await python(t, "import sys\ndef handler(event, context):\n    print('grüß')\n    print('é', end='', file=sys.stderr)\n    print('partial', end='')\n")
  await runtime.invoke()
  await runtime.invoke()
  assert.match(runtime.log, /grüß/)
  assert.match(runtime.log, /partial/)
})

test('logging has the format of the service and starts at WARNING', async (t) => {
  const source = `
import logging
def handler(event, context):
    logging.info('hidden')
    logging.warning('a %s', 'b')
    logging.getLogger().setLevel(logging.INFO)
    logging.getLogger('x').info('shown')
    return logging.__spec__.loader.__class__.__name__
`
  const { id, runtime, payload } = await result(t, source)
  await runtime.stop()
  const lines = runtime.log.split('\n')
  assert.match(lines[0], /^\[WARNING\]\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\t[0-9a-f-]{36}\ta b$/)
  assert.ok(lines[0].includes(id))
  assert.match(lines[1], /^\[INFO\]\t.*\tshown$/)
  assert.equal(lines.length, 3)
  assert.equal(payload, 'SourceFileLoader')
})

test('log level of the configuration applies', async (t) => {
  const source = "import logging\ndef handler(event, context):\n    logging.debug('shown')\n"
  const { runtime } = await result(t, source, {}, { env: { AWS_LAMBDA_LOG_LEVEL: 'DEBUG' } })
  await runtime.stop()
  assert.match(runtime.log, /^\[DEBUG\]\t.*\tshown$/m)
})

test('a module called logging of the function itself is left alone', async (t) => {
  const runtime = await startRuntime(t, 'python', { 'index.py': 'import logging\n' + returns('logging.mine'), 'logging.py': 'mine = 1\n' })
  assert.equal((await runtime.invoke()).payload, 1)
})

test('without site, the paths, their order and the builtins are those of an interpreter with it', async (t) => {
  const list = ['-I', '-c', 'import json, sys; print(json.dumps(sys.path))']
  const own = JSON.parse(execFileSync('/usr/bin/python3', list)).filter((path) => existsSync(path))
  const { payload } = await result(t, 'import builtins, sys\n' + returns('[sys.flags.no_site, sys.path, callable(exit), callable(quit), callable(help)]'))
  const [noSite, paths, ...callable] = payload
  assert.equal(noSite, 1)
  assert.deepEqual(paths.filter((path) => own.includes(path)), own)
  assert.deepEqual(callable, [true, true, true])
})

test('exit in the handler ends the process with its status', async (t) => {
  for (const [call, code] of [['sys.exit(0)', 0], ['sys.exit(3)', 3], ['exit(4)', 4], ['os._exit(5)', 5]]) {
    const runtime = await python(t, `import os, sys\ndef handler(event, context):\n    ${call}\n`)
    assert.deepEqual(await runtime.invoke(), { kind: 'exit', code, signal: null })
  }
})

test('exit during import ends the process without an init error', async (t) => {
  const runtime = await python(t, 'import sys\nsys.exit(0)\n')
  assert.deepEqual(await runtime.invoke(), { kind: 'exit', code: 0, signal: null })
})

test('death by a signal is seen as such', async (t) => {
  const runtime = await python(t, 'import os\ndef handler(event, context):\n    os.kill(os.getpid(), 11)\n')
  assert.deepEqual(await runtime.invoke(), { kind: 'exit', code: null, signal: 'SIGSEGV' })
})

test('process ends when the Runtime API goes away', async (t) => {
  const runtime = await python(t, returns('1'))
  await runtime.invoke()
  runtime.server.close()
  runtime.server.closeAllConnections()
  assert.equal((await runtime.exited).code, 1)
})

test('a dropped connection is opened again', async (t) => {
  const runtime = await python(t, returns('1'))
  await runtime.invoke()
  runtime.server.closeAllConnections()
  assert.equal((await runtime.invoke()).payload, 1)
  assert.equal(runtime.connections, 2)
})

test('a connection that is reset is opened again', async (t) => {
  const runtime = await python(t, returns('1'))
  await runtime.invoke()
  await runtime.reset()
  assert.equal((await runtime.invoke()).payload, 1)
  assert.equal(runtime.connections, 2)
})

test('function that brings its own packages finds them first', async (t) => {
  const runtime = await startRuntime(t, 'python', { 'index.py': 'import sys, json\n' + returns('[sys.path[0], json.mine]'), 'json/__init__.py': 'mine = True\n' })
  assert.deepEqual((await runtime.invoke()).payload, [runtime.directory, true])
})

test('child processes of multiprocessing do not run the runtime', async (t) => {
  const source = `
import multiprocessing
def double(x):
    return 2 * x
def handler(event, context):
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        return pool.map(double, [1, 2])
`
  assert.deepEqual((await result(t, source)).payload, [2, 4])
})

// --- results as the service's encoder has them ---

test('named tuples are objects, wherever they are; other tuples are arrays', async (t) => {
  const source = `
import collections
from typing import NamedTuple
Point = collections.namedtuple("Point", "x y")
class Order(NamedTuple):
    id: int
    at: Point
def handler(event, context):
    if event == "circular":
        a = [Point(1, 2)]
        a.append(a)
        return a
    return {"point": Point(1, 2), "list": [Point(3, (4, 5))], "order": Order(7, Point(8, 9))} if event == "within" else Point(1, None)
`
  const runtime = await python(t, source)
  assert.equal((await runtime.invoke('within')).text, '{"point": {"x": 1, "y": 2}, "list": [{"x": 3, "y": [4, 5]}], "order": {"id": 7, "at": {"x": 8, "y": 9}}}')
  assert.equal((await runtime.invoke('alone')).text, '{"x": 1, "y": null}')
  assert.equal((await runtime.invoke('circular')).payload.errorMessage, 'Unable to marshal response: Circular reference detected')
})

test('bytes within a result are text, when they are UTF-8', async (t) => {
  const runtime = await python(t, "def handler(event, context):\n    return {'b': b'gr\\xc3\\xbc\\xc3\\x9f' if event else b'\\xff'}\n")
  assert.equal((await runtime.invoke(true)).text, '{"b": "grüß"}')
  const { payload } = await runtime.invoke(false)
  assert.equal(payload.errorType, 'Runtime.MarshalError')
  assert.match(payload.errorMessage, /can't decode byte 0xff/)
})

// --- the log ---

/** The frames that a log has, and what stands between them, as texts. */
function frames(log) {
  const bytes = Buffer.from(log, 'latin1')
  const found = []
  for (let at = bytes.indexOf(0xa5); at >= 0; at = bytes.indexOf(0xa5, at)) {
    const length = bytes.readUInt32BE(at + 4)
    found.push({ type: bytes.readUInt32BE(at), ms: Number(bytes.readBigInt64BE(at + 8) / 1000n), message: bytes.toString('utf8', at + 16, at + 16 + length) })
    at += 16 + length
  }
  return found
}

test('with a descriptor for it, a message of several lines is one frame with its level', async (t) => {
  const source = 'import logging, os\ndef handler(event, context):\n    logging.warning("a\\nb")\n    assert "_LAMBDA_TELEMETRY_LOG_FD" not in os.environ\n    raise ValueError("no\\ngood")\n'
  const runtime = await python(t, source, { env: { _LAMBDA_TELEMETRY_LOG_FD: '1' }, encoding: 'latin1' })
  const { id } = await runtime.invoke()
  await runtime.stop()
  const [warning, error, ...others] = frames(runtime.log)
  assert.deepEqual(others, [])
  assert.equal(warning.type, 0xa55a0013)
  assert.match(warning.message, new RegExp(`^\\[WARNING\\]\t\\S+Z\t${id}\ta\nb\n$`))
  assert.ok(Math.abs(warning.ms - Date.now()) < 60_000)
  assert.equal(error.type, 0xa55a0017)
  assert.ok(error.message.startsWith('[ERROR] ValueError: no\ngood\nTraceback (most recent call last):\n\u00a0\u00a0File "'), error.message)
})

test('JSON log: what cannot be JSON, extras, exceptions without a traceback', async (t) => {
  const source = `
import logging
def handler(event, context):
    logging.getLogger().setLevel(5)
    logging.log(7, "low")
    logging.error("x %s", {1, 2} and "set", extra={"thing": "value", "none": None})
    logging.error("with", exc_info=KeyError("k"))
    logging.error("not json", extra={"bad": {1}})
`
  const runtime = await python(t, source, { env: { AWS_LAMBDA_LOG_FORMAT: 'JSON' } })
  assert.equal((await runtime.invoke()).text, 'null')
  await runtime.stop()
  const lines = runtime.log.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
  assert.deepEqual(lines.map(({ level, message, thing, errorType }) => [level, message, thing, errorType]), [
    ['NOTSET', 'low', undefined, undefined],
    ['ERROR', 'x set', 'value', undefined],
    ['ERROR', 'with', undefined, 'KeyError'],
  ])
  assert.match(runtime.log, /TypeError: Object of type set is not JSON serializable/) // as logging reports such things
})

test('a function that closes its standard output still gets its answers and errors through', async (t) => {
  for (const env of [{}, { _LAMBDA_TELEMETRY_LOG_FD: '1' }]) {
    const runtime = await python(t, 'import logging, os\nos.close(1)\ndef handler(event, context):\n    logging.error("lost")\n    return 1 / event\n', { env })
    assert.equal((await runtime.invoke(1)).payload, 1)
    assert.equal((await runtime.invoke(0)).payload.errorType, 'ZeroDivisionError')
    assert.equal((await runtime.invoke(1)).payload, 1)
  }
})
