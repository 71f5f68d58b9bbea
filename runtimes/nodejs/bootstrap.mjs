// Runs a function written for Node.js: a client of the Lambda Runtime API (version 2018-06-01).
//
// Started as `node bootstrap.mjs` with AWS_LAMBDA_RUNTIME_API, _HANDLER and LAMBDA_TASK_ROOT set. What a caller or a log
// reader can see follows AWS's own runtime: error objects, log lines, the context, callbacks that wait for an empty event
// loop, exit statuses 128 and 129.
import { BeforeExit, invokeOnce } from './invocation.mjs'
import { reported, UnhandledPromiseRejection } from './errors.mjs'
import { loadHandler } from './handler.mjs'
import { logError, patchConsole, setRequest } from './log.mjs'
import { RuntimeApi } from './runtime_api.mjs'
import { awslambda, invokeStreaming, isStreaming } from './streaming.mjs'

const EXIT_UNHANDLED_REJECTION = 128
const EXIT_UNCAUGHT_EXCEPTION = 129

const api = new RuntimeApi(process.env.AWS_LAMBDA_RUNTIME_API)
let errorPath = 'init/error' // where a failure is reported that nobody caught

let failing = false

async function fail(title, error, status) {
  if (failing) return // whatever else goes wrong on the way out
  failing = true
  logError(title, error)
  try {
    await api.postError(errorPath, reported(error))
  } catch (lost) {
    process.stderr.write(`bootstrap.mjs: ${lost.message}\n`)
  }
  process.exit(status)
}

process.on('uncaughtException', (error) => fail('Uncaught Exception', error, EXIT_UNCAUGHT_EXCEPTION))
process.on('unhandledRejection', (reason, promise) =>
  fail('Unhandled Promise Rejection', new UnhandledPromiseRejection(reason, promise), EXIT_UNHANDLED_REJECTION),
)

async function run() {
  const handler = await loadHandler(process.env.LAMBDA_TASK_ROOT, process.env._HANDLER)
  const beforeExit = new BeforeExit()
  for (;;) {
    const { headers, body } = await api.next()
    const id = headers['lambda-runtime-aws-request-id']
    errorPath = `invocation/${id}/error`
    setRequest(id, headers['lambda-runtime-aws-tenant-id'])
    if (isStreaming(handler)) {
      await invokeStreaming(handler, headers, body, api, `invocation/${id}`, beforeExit)
      continue
    }
    const outcome = await invokeOnce(handler, headers, body, beforeExit)
    if (outcome.error !== undefined) await api.postError(errorPath, outcome.error)
    else await api.postResponse(`invocation/${id}/response`, outcome.response)
  }
}

patchConsole()
globalThis.awslambda = awslambda
// The loop is not awaited at the top level: a handler that never settles must leave the event loop empty, not the module.
run().catch((error) => fail('Uncaught Exception', error, EXIT_UNCAUGHT_EXCEPTION))
