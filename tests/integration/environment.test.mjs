// What a function sees: environment variables, working directory, user, limits, as recorded from the service
// (docs/environment.md tells where Kiln differs, and why), from Python, Node.js, the shell and C.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { createFunction, invoke, nodeZip, pythonZip, REPOSITORY, startKiln, temporaryDirectory, zip } from '../lib/kiln.mjs'
import { createProgram, createPython, invokeToEnd, PYTHON, python } from '../lib/programs.mjs'
import { recordedSequences } from '../lib/recorded.mjs'

const SHELL = `#!/bin/sh
api="http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation"
escape() { sed 's/\\\\/\\\\\\\\/g; s/"/\\\\"/g'; }
while :; do
    curl -sS -D /tmp/headers -o /dev/null "$api/next"
    id=$(tr -d '\\r' </tmp/headers | sed -n 's/^lambda-runtime-aws-request-id: //Ip')
    env | escape | sed 's/\\([^=]*\\)=\\(.*\\)/"\\1": "\\2",/' >/tmp/pairs
    echo "{$(tr -d '\\n' </tmp/pairs)\\"\\": \\"\\"}" | curl -sS -o /dev/null -d @- "$api/$id/response"
done
`
const PYTHON_SOURCE = 'import os\ndef handler(event, context): return dict(os.environ)'
const NODE_SOURCE = 'export const handler = async () => ({ ...process.env })'
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const STREAM = /^\d{4}\/\d\d\/\d\d\/\[\$LATEST\][0-9a-f]{32}$/

let kiln
let keys
before(async () => {
  keys = join(temporaryDirectory(), 'keys')
  writeFileSync(keys, '[other]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = hush\naws_session_token = token\naws_account_id = 111122223333\n')
  kiln = await startKiln({ args: ['--network', 'host', '--function-endpoint', 'self', '--function-credentials', keys], env: { SECRET_OF_THE_HOST: 'x' } })
})
after(async () => {
  await kiln.stop()
  rmSync(dirname(keys), { recursive: true })
})

// --- environment variables ---

/** The variables that were recorded for a runtime, from the first of its two invocations. */
function recordedVariables(runtime) {
  const sequences = recordedSequences()
  const name = Object.keys(sequences).find((key) => key.endsWith(`test_introspection_invoke[${runtime}]`))
  const { recorded } = sequences[name].steps.find((step) => step.operation === 'Invoke')
  return (recorded.Payload ?? recorded).environment
}

/** Every name and every value is as recorded, but for what docs/environment.md says. */
function assertAsRecorded(seen, runtime, functionName, handler) {
  const expected = { ...recordedVariables(runtime) }
  const { AWS_ENDPOINT_URL, ...variables } = seen
  assert.equal(AWS_ENDPOINT_URL, kiln.endpoint)
  delete expected.NODE_EXTRA_CA_CERTS // the host's certificates are used
  if (runtime.startsWith('provided')) delete expected._X_AMZN_TRACE_ID // set by the function's own runtime, or not
  assert.deepEqual(Object.keys(variables).sort(), Object.keys(expected).sort(), runtime)
  const forms = {
    AWS_ACCESS_KEY_ID: /^test$/,
    AWS_SECRET_ACCESS_KEY: /^test$/,
    AWS_SESSION_TOKEN: /^test$/,
    AWS_LAMBDA_FUNCTION_NAME: new RegExp(`^${functionName}$`),
    AWS_LAMBDA_LOG_GROUP_NAME: new RegExp(`^/aws/lambda/${functionName}$`),
    AWS_LAMBDA_LOG_STREAM_NAME: STREAM,
    AWS_LAMBDA_RUNTIME_API: /^(127\.0\.0\.1:\d+|169\.254\.100\.1:9001)$/,
    AWS_XRAY_DAEMON_ADDRESS: /^169\.254\.100\.1:2000$/,
    _AWS_XRAY_DAEMON_ADDRESS: /^169\.254\.100\.1$/,
    AWS_DEFAULT_REGION: /^us-east-1$/,
    AWS_REGION: /^us-east-1$/,
    _HANDLER: new RegExp(`^${handler}$`),
    _X_AMZN_TRACE_ID: /^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=0$/,
  }
  for (const [name, value] of Object.entries(variables)) {
    if (forms[name]) assert.match(value, forms[name], name)
    else assert.equal(value, expected[name], `${name} of ${runtime}`)
  }
}

const RECORDED = [
  ...['python3.8', 'python3.9', 'python3.10', 'python3.11', 'python3.12', 'python3.13', 'python3.14'].map((name) => [name, pythonZip(PYTHON_SOURCE)]),
  ...['nodejs18.x', 'nodejs20.x', 'nodejs22.x', 'nodejs24.x'].map((name) => [name, nodeZip(NODE_SOURCE)]),
  ['provided.al2023', zip({ bootstrap: SHELL })],
]
for (const [runtime, files] of RECORDED) {
  test(`variables of ${runtime} are as recorded`, async () => {
    const name = `variables-${runtime.replaceAll('.', '-')}`
    await createFunction(kiln.lambda, {
      FunctionName: name,
      Runtime: runtime,
      MemorySize: 1024,
      Timeout: 20,
      Environment: { Variables: { TEST_KEY: 'TEST_VAL' } },
      Code: { ZipFile: files },
    })
    const { payload, text, functionError } = await invokeToEnd(kiln.lambda, name)
    assert.equal(functionError, undefined, text)
    for (const own of ['', '_', 'PWD', 'OLDPWD', 'SHLVL']) if (runtime.startsWith('provided')) delete payload[own] // the shell's
    assertAsRecorded(payload, runtime, name, 'index.handler')
  })
}

test('variables of a C program on provided.al2, and what else it begins with', async () => {
  await createProgram(kiln.lambda, 'in-c', 'introspect', { Runtime: 'provided.al2', MemorySize: 1024, Environment: { Variables: { TEST_KEY: 'TEST_VAL' } } })
  const { payload } = await invokeToEnd(kiln.lambda, 'in-c')
  assertAsRecorded(payload.environment, 'provided.al2', 'in-c', 'bootstrap')
  assert.deepEqual(payload.argv, ['/var/task/bootstrap'])
  assert.equal(payload.cwd, '/var/task')
  assert.match(payload.hostname, /^169-254-\d+-\d+$/)
})

test('each invocation has its own trace id, and the caller\'s when there is one', async () => {
  await createPython(kiln.lambda, 'traced')
  const look = () => python(kiln.lambda, 'traced', 'result = os.environ["_X_AMZN_TRACE_ID"]')
  assert.notEqual(await look(), await look())
  const answer = await kiln.fetch('/2015-03-31/functions/traced/invocations', {
    method: 'POST',
    headers: { 'X-Amzn-Trace-Id': 'Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=1' },
    body: JSON.stringify({ code: 'result = os.environ["_X_AMZN_TRACE_ID"]' }),
  })
  assert.match(await answer.json(), /^Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;/)
})

test('what the function sets replaces what is not reserved', async () => {
  await createPython(kiln.lambda, 'own', { Environment: { Variables: { TZ: 'Europe/Vienna', PATH: '/opt/only', LANG: 'C', AWS_ENDPOINT_URL: 'http://mine' } } })
  const seen = await python(kiln.lambda, 'own', 'result = [os.environ[name] for name in ["TZ", "PATH", "LANG", "AWS_ENDPOINT_URL"]]')
  assert.deepEqual(seen, ['Europe/Vienna', '/opt/only', 'C', 'http://mine'])
})

test('credentials are those of the function\'s account: given, or test ones that name it', async () => {
  for (const [accessKeyId, expected] of [
    ['111122223333', ['AKIDOTHER', 'hush', 'token']],
    ['444455556666', ['444455556666', 'test', 'test']],
  ]) {
    const client = kiln.client({ credentials: { accessKeyId, secretAccessKey: 'test' } })
    await createFunction(client, { FunctionName: 'keys', Runtime: PYTHON, Role: `arn:aws:iam::${accessKeyId}:role/r`, Code: { ZipFile: pythonZip(PYTHON_SOURCE) } })
    const { payload } = await invoke(client, 'keys')
    assert.deepEqual([payload.AWS_ACCESS_KEY_ID, payload.AWS_SECRET_ACCESS_KEY, payload.AWS_SESSION_TOKEN], expected)
  }
})

/** The files of the SDK's CommonJS form, with all it needs. */
function sdkFiles() {
  const root = join(REPOSITORY, 'tests/node_modules')
  const files = {}
  const walk = (folder) => {
    for (const name of readdirSync(join(root, folder))) {
      const path = join(folder, name)
      if (/dist-(es|types)|client-(iam|lambda)/.test(path)) continue
      if (statSync(join(root, path)).isDirectory()) walk(path)
      else if (/\.(c?js|json)$/.test(name)) files[`node_modules/${path}`] = readFileSync(join(root, path))
    }
  }
  walk('')
  return files
}

test('the AWS SDK inside a function reaches Kiln by itself', async () => {
  const source = `
const { STSClient, GetCallerIdentityCommand } = require('@aws-sdk/client-sts')
exports.handler = async () => (await new STSClient().send(new GetCallerIdentityCommand({}))).Account`
  await createFunction(kiln.lambda, {
    FunctionName: 'sdk',
    Runtime: 'nodejs20.x',
    MemorySize: 1769,
    Timeout: 60,
    Code: { ZipFile: zip({ 'index.js': source, ...sdkFiles() }) },
  })
  const { payload, text } = await invoke(kiln.lambda, 'sdk')
  assert.equal(payload, '000000000000', text)
})

// --- the rest of the world ---

test('directory, user, owners and modes are as recorded', async () => {
  await createPython(kiln.lambda, 'inside')
  const seen = await python(kiln.lambda, 'inside', `
import getpass, pwd
def entry(path):
    status = os.stat(path)
    return [stat.filemode(status.st_mode), status.st_uid, status.st_gid, pwd.getpwuid(status.st_uid).pw_name]
result = {
    "login": pwd.getpwuid(os.getuid()).pw_name, "whoami": subprocess.check_output(["whoami"], text=True).strip(),
    "user": getpass.getuser(), "groups": os.getgroups(), "root": os.getuid() == 0,
    "system": os.uname().sysname, "pwd": os.getcwd(), "hostname": socket.gethostname(),
    "task": entry("/var/task"), "opt": entry("/opt"), "tmp": entry("/tmp")}`)
  assert.match(seen.hostname, /^169-254-\d+-\d+$/)
  assert.deepEqual({ ...seen, hostname: 0 }, {
    login: 'sbx_user1051', whoami: 'sbx_user1051', user: 'sbx_user1051', groups: [], root: false,
    system: 'Linux', pwd: '/var/task', hostname: 0,
    task: ['drwxr-xr-x', 0, 0, 'root'], opt: ['drwxr-xr-x', 0, 0, 'root'], tmp: ['drwxrwxrwt', 0, 0, 'root'],
  })
  await createFunction(kiln.lambda, { FunctionName: 'os-user', Runtime: 'nodejs20.x', Code: { ZipFile: nodeZip("import os from 'node:os'\nexport const handler = async () => os.userInfo().username") } })
  assert.equal((await invoke(kiln.lambda, 'os-user')).payload, 'sbx_user1051')
})

test('limits: descriptors, core files, /tmp, processes seen', async () => {
  await createPython(kiln.lambda, 'limited', { EphemeralStorage: { Size: 600 } })
  const seen = await python(kiln.lambda, 'limited', `
space = os.statvfs("/tmp")
result = {
    "files": resource.getrlimit(resource.RLIMIT_NOFILE), "core": resource.getrlimit(resource.RLIMIT_CORE),
    "stack": resource.getrlimit(resource.RLIMIT_STACK)[0],
    "tmp_mib": space.f_frsize * space.f_blocks >> 20, "processes": [name for name in os.listdir("/proc") if name.isdigit()]}`)
  assert.deepEqual({ ...seen, processes: 0 }, { files: [1024, 1024], core: [0, 0], stack: 8 << 20, tmp_mib: 600, processes: 0 })
  assert.ok(seen.processes.length <= 3, seen.processes.join())
})

test('nothing of the daemon\'s own environment is to be seen', async () => {
  await createPython(kiln.lambda, 'clean')
  assert.equal(await python(kiln.lambda, 'clean', 'result = os.environ.get("SECRET_OF_THE_HOST")'), null)
})

test('the context is the invocation\'s', async () => {
  await createPython(kiln.lambda, 'context', { Timeout: 7 })
  const clientContext = Buffer.from(JSON.stringify({ custom: { key: 'välue' }, env: { a: 'b' }, client: { app_title: 't' } })).toString('base64')
  const code = `
c = context
result = {"id": c.aws_request_id, "name": c.function_name, "version": c.function_version, "arn": c.invoked_function_arn,
    "memory": c.memory_limit_in_mb, "group": c.log_group_name, "stream": c.log_stream_name, "left": c.get_remaining_time_in_millis(),
    "custom": c.client_context.custom, "title": c.client_context.client.app_title, "identity": c.identity.cognito_identity_id}`
  const { payload } = await invoke(kiln.lambda, 'context', { code }, { ClientContext: clientContext, Qualifier: '$LATEST' })
  assert.match(payload.id, UUID)
  assert.match(payload.stream, STREAM)
  assert.ok(payload.left > 5000 && payload.left <= 7000, `${payload.left} ms left`)
  assert.deepEqual({ ...payload, id: 0, stream: 0, left: 0 }, {
    id: 0, name: 'context', version: '$LATEST', arn: 'arn:aws:lambda:us-east-1:000000000000:function:context:$LATEST',
    memory: '128', group: '/aws/lambda/context', stream: 0, left: 0,
    custom: { key: 'välue' }, title: 't', identity: null,
  })
})

// --- a wrapper around the runtime ---

test('AWS_LAMBDA_EXEC_WRAPPER starts the runtime, for Python and Node', async () => {
  // The guide's own way to add options to the interpreter.
  const wrapper = `#!/bin/bash
args=("$@")
export WRAPPED="$#"
exec "\${args[0]}" "\${args[@]:1:$#-2}" "\${args[@]: -1}"
`
  const parameters = { Environment: { Variables: { AWS_LAMBDA_EXEC_WRAPPER: '/var/task/wrapper' } }, Timeout: 10 }
  const files = { wrapper: { content: wrapper, mode: 0o755 } }
  await createFunction(kiln.lambda, { FunctionName: 'wrapped-python', Runtime: PYTHON, Code: { ZipFile: zip({ 'index.py': PYTHON_SOURCE, ...files }) }, ...parameters })
  assert.equal((await invokeToEnd(kiln.lambda, 'wrapped-python', {})).payload.WRAPPED, '2')
  await createFunction(kiln.lambda, { FunctionName: 'wrapped-node', Runtime: 'nodejs20.x', Code: { ZipFile: zip({ 'index.mjs': NODE_SOURCE, ...files }) }, ...parameters })
  assert.equal((await invokeToEnd(kiln.lambda, 'wrapped-node', {})).payload.WRAPPED, '2')
})

test('a wrapper that is not there, or may not run, is an exit of the runtime', async () => {
  for (const [path, status] of [['/var/task/missing', 127], ['/var/task/index.py', 126]]) {
    const name = `unwrapped-${status}`
    await createFunction(kiln.lambda, {
      FunctionName: name,
      Runtime: PYTHON,
      Environment: { Variables: { AWS_LAMBDA_EXEC_WRAPPER: path } },
      Code: { ZipFile: pythonZip(PYTHON_SOURCE) },
    })
    const { payload, functionError } = await invokeToEnd(kiln.lambda, name)
    assert.equal(functionError, 'Unhandled')
    assert.equal(payload.errorType, 'Runtime.ExitError')
    assert.match(payload.errorMessage, new RegExp(`^RequestId: [0-9a-f-]{36} Error: Runtime exited with error: exit status ${status}$`))
  }
})
