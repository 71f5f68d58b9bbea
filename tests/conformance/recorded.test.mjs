// Every recorded sequence once more, over HTTP and with the SDK. Whole answers must be as recorded; what the recorded
// functions did when they were invoked is done here by functions of our own.
import { after, before, describe, test } from 'node:test'
import { recordedSequences, Replay } from '../lib/recorded.mjs'
import { IS_ROOT, startKiln } from '../lib/kiln.mjs'

// Not replayed, by a part of the name, with the reason.
const EXCEPTIONS = {
  test_advanced_logging_configuration_format_switch: 'the JSON log format is refused until it is written',
  test_lambda_runtime_error: "the stack trace of the service's own importer is recorded",
  'test_introspection_invoke[python3.9]': 'recorded where the locale en_US.UTF-8 was installed; without it Python sets LC_CTYPE',
  'test_introspection_invoke[python3.10]': 'likewise',
  'test_introspection_invoke[python3.11]': 'likewise',
  'test_introspection_invoke[provided.al2]': 'the Runtime API was recorded at 127.0.0.1, on the older system alone',
  test_lambda_concurrent_code_updates: 'a race between two requests; replayed without a network by the unit tests',
  test_lambda_concurrent_config_updates: 'likewise',
  test_mixed_architecture: 'needs a host that runs both architectures',
}
// The recorded address of the Runtime API is that of a network namespace.
if (!IS_ROOT) {
  EXCEPTIONS.test_lambda_init_environment = 'needs root, for a network of its own'
  EXCEPTIONS.test_introspection_invoke = 'likewise'
}

// Where another text than the recorded one is right: the interpreters are the host's, not in /var/lang.
const HOST_INTERPRETERS = ['/var/lang/lib:', '/var/lang/bin:']
const CORRECTIONS = { test_lambda_init_environment: HOST_INTERPRETERS, test_introspection_invoke: HOST_INTERPRETERS }

// A look is recorded that came before an update was through; here the update may be faster.
const LATE = ['test_lambda_code_location_zipfile', 'test_lambda_code_location_s3']

const VERSION = (id) => `def handler(event, context):
    return {"version_id": "version${id}", "invoked_arn": context.invoked_function_arn,
            "version_from_ctx": context.function_version}
`
const INTROSPECTION = `def handler(event, context):
    names = ["invoked_function_arn", "function_version", "function_name", "memory_limit_in_mb", "aws_request_id",
             "log_group_name", "log_stream_name", "client_context"]
    return {"event": event, "context": {name: getattr(context, name) for name in names}}
`
const ENVIRONMENT = `import os
def handler(event, context):
    return {"environment": dict(os.environ)}
`
const HANDLERS = `def handler(event, context):
    return {"handler": "handler"}
def handler_two(event, context):
    return {"handler": "handler_two"}
`

const CONTEXT = ['aws_request_id', 'function_name', 'function_version', 'invoked_function_arn', 'log_group_name', 'log_stream_name', 'memory_limit_in_mb']
const INTROSPECTION_PYTHON = `import os
def handler(event, context):
    ctx = {name: getattr(context, name) for name in ${JSON.stringify(CONTEXT)}}
    ctx["remaining_time_in_millis"] = context.get_remaining_time_in_millis()
    return {"ctx": ctx, "environment": dict(os.environ), "packages": []}
`
const INTROSPECTION_NODE = `exports.handler = async (event, context) => ({
  ctx: {
    aws_request_id: context.awsRequestId, function_name: context.functionName, function_version: context.functionVersion,
    invoked_function_arn: context.invokedFunctionArn, log_group_name: context.logGroupName,
    log_stream_name: context.logStreamName, remaining_time_in_millis: context.getRemainingTimeInMillis(),
  },
  environment: process.env, packages: [],
})
`
// A runtime of its own: the variables it was started with, before the interpreter adds to them.
const INTROSPECTION_PROVIDED = `#!/usr/bin/python3
import http.client, json
environment = dict(item.split("=", 1) for item in open("/proc/self/environ").read().split(chr(0)) if item)
api = http.client.HTTPConnection(environment["AWS_LAMBDA_RUNTIME_API"])
while True:
    api.request("GET", "/2018-06-01/runtime/invocation/next")
    event = api.getresponse()
    event.read()
    request = event.headers["Lambda-Runtime-Aws-Request-Id"]
    ctx = {"aws_request_id": request, "deadline": event.headers["Lambda-Runtime-Deadline-Ms"],
           "function_name": environment["AWS_LAMBDA_FUNCTION_NAME"], "function_version": environment["AWS_LAMBDA_FUNCTION_VERSION"],
           "invoked_function_arn": event.headers["Lambda-Runtime-Invoked-Function-Arn"],
           "log_group_name": environment["AWS_LAMBDA_LOG_GROUP_NAME"], "log_stream_name": environment["AWS_LAMBDA_LOG_STREAM_NAME"],
           "memory_limit_in_mb": int(environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])}
    environment["_X_AMZN_TRACE_ID"] = event.headers["Lambda-Runtime-Trace-Id"]
    answer = json.dumps({"ctx": ctx, "environment": environment, "packages": []})
    api.request("POST", "/2018-06-01/runtime/invocation/" + request + "/response", answer)
    api.getresponse().read()
`
const INITIALIZATION_TYPE = `import os
def handler(event, context):
    if event.get("wait"):
        import time
        time.sleep(event["wait"])
    return os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"]
`
const ECHO = 'def handler(event, context):\n    print(event)\n    return event\n'

// What the packages hold where the recorded payload matters: the source, by the how-manieth package it is.
const SOURCES = {
  test_lambda_versions_with_code_changes: VERSION,
  test_lambda_alias_moving: VERSION,
  test_alias_routingconfig: VERSION,
  test_invocation_with_qualifier: () => INTROSPECTION,
  test_upload_lambda_from_s3: () => INTROSPECTION,
  test_lambda_init_environment: () => ENVIRONMENT,
  'test_introspection_invoke[python': () => INTROSPECTION_PYTHON,
  'test_introspection_invoke[nodejs': () => INTROSPECTION_NODE,
  'test_introspection_invoke[provided': () => INTROSPECTION_PROVIDED,
  'TestLambdaConcurrency::': () => INITIALIZATION_TYPE,
  test_invocation_with_logs: () => ECHO,
  test_invocation_type_request_response: () => ECHO,
  test_lambda_too_large_response: () => 'def handler(event, context):\n    return "a" * event["bytenum"]\n',
  test_lambda_runtime_exit: () => 'import sys\nsys.exit(0)\n',
  test_lambda_handler_error: () => 'def handler(event, context):\n    raise Exception("Handler fails")\n',
  test_lambda_handler_exit: () => 'import sys\ndef handler(event, context):\n    sys.exit(0)\n',
  test_lambda_handler_update: () => HANDLERS,
}

function packages(name) {
  const source = Object.entries(SOURCES).find(([part]) => name.includes(part))?.[1]
  const seen = []
  return ({ $zip: content, file }) => {
    if (!seen.includes(content)) seen.push(content)
    if (file === 'package-for-runtime') file = name.includes('[python') ? 'handler.py' : name.includes('[nodejs') ? 'index.js' : 'bootstrap'
    return { [file]: source ? source(seen.indexOf(content) + 1) : content }
  }
}

describe('recorded sequences', { concurrency: 4 }, () => {
  const table = {}
  let kiln

  before(async () => {
    kiln = await startKiln({ args: IS_ROOT ? ['--network', 'none'] : [] })
  })

  after(async () => {
    console.table(table)
    await kiln?.stop()
  })

  Object.entries(recordedSequences(CORRECTIONS)).forEach(([name, { steps }], index) => {
    const exception = Object.entries(EXCEPTIONS).find(([part]) => name.includes(part))
    if (exception) return console.log(`not replayed: ${name}: ${exception[1]}`)
    test(name, async () => {
      const account = String(100_000_000_001 + index)
      const client = kiln.client({ credentials: { accessKeyId: account, secretAccessKey: 'any' } })
      const comesLate = LATE.some((part) => name.includes(part))
      const replay = new Replay(client, { account, packageFor: packages(name), comesLate })
      for (const [at, step] of steps.entries()) {
        if (step.skip) continue
        const row = (table[step.operation] ??= { sent: 0, compared: 0, different: 0 })
        row.sent++
        try {
          if (await replay.step(at, step)) row.compared++
        } catch (error) {
          row.different++
          throw error
        }
      }
      client.destroy()
    })
  })
})
