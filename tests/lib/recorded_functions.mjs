// What the functions of the recorded sequences did, for those whose answers to invokes are compared.
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
const ECHO_NODE = 'exports.handler = async (event) => {\n  console.log(event)\n  return event\n}\n'
const WAIT = 'import time\ndef handler(event, context):\n    time.sleep(event.get("wait", 0))\n'
const CONTEXT_NODE = `exports.handler = async (event, { getRemainingTimeInMillis, ...context }) => ({ context })
`
const NOTHING = 'def handler(event, context):\n    pass\n'
const NOTHING_NODE = 'exports.handler = async () => {}\n'
const REQUEST_ID = 'def handler(event, context):\n    return context.aws_request_id\n'
const ES6_NODE = `export const handler = async (event) => ({
  statusCode: 200, body: JSON.stringify(\`response from localstack lambda: \${JSON.stringify(event)}\`),
})
`
const SYSTEM = `import getpass, os, platform, stat, subprocess
from pathlib import Path
def handler(event, context):
    paths = {}
    for path in map(Path, ["/var/task", "/opt", "/tmp", "/lambda-entrypoint.sh"]):
        if path.exists():
            found, name = path.stat(), str(path).replace("/", "_")
            paths |= {name + "_mode": stat.filemode(found.st_mode), name + "_uid": found.st_uid,
                      name + "_owner": path.owner(), name + "_gid": found.st_gid}
    return {"event": event, "user_login_name": getpass.getuser(), "user_whoami": subprocess.getoutput("whoami"),
            "platform_system": platform.system(), "platform_machine": platform.machine(), "pwd": os.getcwd(), "paths": paths}
`
// Line 55 raises, as recorded.
const RAISE_AT_55 = `${'#\n'.repeat(53)}def handler(event, context):
    raise Exception("Test exception (this is intentional)")
`
const UNCAUGHT = `#!/usr/bin/python3
import http.client, json, os
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
while True:
    api.request("GET", "/2018-06-01/runtime/invocation/next")
    event = api.getresponse()
    message = json.loads(event.read())["error_msg"]
    answer = json.dumps({"errorMessage": "Error: " + message, "errorType": "errorString"})
    api.request("POST", "/2018-06-01/runtime/invocation/" + event.headers["Lambda-Runtime-Aws-Request-Id"] + "/error", answer)
    api.getresponse().read()
`

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
  test_lambda_concurrency_block: () => ECHO,
  'TestLambdaConcurrency::': () => INITIALIZATION_TYPE,
  'test_invocation_with_logs[nodejs': () => ECHO_NODE,
  test_invocation_with_logs: () => ECHO,
  'test_invocation_type_request_response[nodejs': () => ECHO_NODE,
  test_invocation_type_request_response: () => ECHO,
  'test_invocation_type_no_return_payload[python': () => NOTHING,
  'test_invocation_type_no_return_payload[nodejs': () => NOTHING_NODE,
  test_runtime_introspection_x86: () => SYSTEM,
  test_mixed_architecture: () => SYSTEM,
  test_lambda_invoke_no_timeout: () => WAIT,
  test_lambda_with_context: () => CONTEXT_NODE,
  test_request_id_invoke: () => REQUEST_ID,
  test_invoke_nodejs_es6_lambda: () => ES6_NODE,
  test_dead_letter_queue: () => RAISE_AT_55,
  test_uncaught_exception_invoke: () => UNCAUGHT,
  test_lambda_too_large_response: () => 'def handler(event, context):\n    return "a" * event["bytenum"]\n',
  test_lambda_runtime_exit: () => 'import sys\nsys.exit(0)\n',
  test_lambda_handler_error: () => 'def handler(event, context):\n    raise Exception("Handler fails")\n',
  test_lambda_handler_exit: () => 'import sys\ndef handler(event, context):\n    sys.exit(0)\n',
  test_lambda_handler_update: () => HANDLERS,
}

/** For the sequence of that name: what makes the files of a package, see the README of tests/data/recorded. */
export function packagesOf(name) {
  const source = Object.entries(SOURCES).find(([part]) => name.includes(part))?.[1]
  const seen = []
  return ({ $zip: content, file }) => {
    if (!seen.includes(content)) seen.push(content)
    if (file === 'package-for-runtime') file = name.includes('[python') ? 'handler.py' : name.includes('[nodejs') ? 'index.js' : 'bootstrap'
    return { [file]: source ? source(seen.indexOf(content) + 1) : content }
  }
}

