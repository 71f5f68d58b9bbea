// One invocation: the handler's three ways to answer (a promise, a callback, the context's methods), of which the first
// counts. A callback's result is sent when the event loop is empty, unless the function has said not to wait.
import { NEVER_SETTLED, NodeJsExit, reported } from './errors.mjs'
import { logError } from './log.mjs'

/** One listener of the process's beforeExit event, which comes when the event loop is empty. */
export class BeforeExit {
  #listener

  constructor() {
    process.on('beforeExit', () => this.#listener?.())
  }

  set(listener) {
    this.#listener = listener
  }
}

function serialize(response) {
  let text
  try {
    text = JSON.stringify(response === undefined ? null : response)
  } catch {
    throw new Error('Unable to stringify response body')
  }
  return Buffer.from(text ?? 'null')
}

function parseHeader(text, name) {
  if (!text) return undefined
  try {
    // HTTP headers are read as Latin-1; the JSON in them is UTF-8.
    return JSON.parse(Buffer.from(text, 'latin1').toString())
  } catch (error) {
    throw new Error(`Cannot parse ${name} as json: ${error}`)
  }
}

export function contextData(headers) {
  const deadline = Number(headers['lambda-runtime-deadline-ms'])
  return {
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    clientContext: parseHeader(headers['lambda-runtime-client-context'], 'ClientContext'),
    identity: parseHeader(headers['lambda-runtime-cognito-identity'], 'CognitoIdentity'),
    invokedFunctionArn: headers['lambda-runtime-invoked-function-arn'],
    awsRequestId: headers['lambda-runtime-aws-request-id'],
    tenantId: headers['lambda-runtime-aws-tenant-id'],
    getRemainingTimeInMillis: () => deadline - Date.now(),
  }
}

export function setTraceId(id) {
  if (id) process.env._X_AMZN_TRACE_ID = id
  else delete process.env._X_AMZN_TRACE_ID
}

/** Runs the handler. Resolves with { response: Buffer } or { error: object for the Runtime API }; never rejects. */
export function invokeOnce(handler, headers, body, beforeExit) {
  return new Promise((resolve) => {
    let waitForEmptyEventLoop = true
    let finished = false

    const finish = (outcome) => {
      beforeExit.set(undefined)
      resolve(outcome)
    }
    const fail = (error) => {
      logError('Invoke Error', error)
      finish({ error: reported(error) })
    }
    const succeed = (result) => {
      try {
        finish({ response: serialize(result) })
      } catch (error) {
        fail(error)
      }
    }
    // Only the first answer of an invocation counts.
    const once = (answer) => (...values) => {
      if (finished) return
      finished = true
      answer(...values)
    }
    const done = (error, result) => (error === undefined || error === null ? succeed(result) : fail(error))
    const callback = once((error, result) => {
      if ((error !== undefined && error !== null) || !waitForEmptyEventLoop) done(error, result)
      else beforeExit.set(() => setImmediate(succeed, result))
    })
    const context = {
      get callbackWaitsForEmptyEventLoop() {
        return waitForEmptyEventLoop
      },
      set callbackWaitsForEmptyEventLoop(value) {
        waitForEmptyEventLoop = value
      },
      succeed: once((result) => succeed(result)),
      fail: once((error) => fail(error ?? 'handled')),
      done: once(done),
    }

    // The event loop ran empty and nothing has answered: a promise that can no longer settle is an error, a callback
    // that was never called is a null result.
    beforeExit.set(once(() => {
      if (handler.constructor.name !== 'AsyncFunction') return succeed(null)
      fail(new NodeJsExit(NEVER_SETTLED))
    }))

    try {
      setTraceId(headers['lambda-runtime-trace-id'])
      const result = handler(JSON.parse(body), Object.assign(context, contextData(headers)), callback)
      if (typeof result?.then === 'function') result.then(context.succeed, context.fail)
    } catch (error) {
      once(fail)(error)
    }
  })
}
