// The runtime's own errors, and how any error is reported and logged.
import { types } from 'node:util'

class RuntimeError extends Error {}

function define(name, Base = RuntimeError) {
  const Class = { [name]: class extends Base {} }[name]
  Class.prototype.name = `Runtime.${name}`
  return Class
}

export const ImportModuleError = define('ImportModuleError')
export const HandlerNotFound = define('HandlerNotFound')
export const MalformedHandlerName = define('MalformedHandlerName')
export const CallbackHandlerDeprecated = define('CallbackHandlerDeprecated')
export const NodeJsExit = define('NodeJsExit')
/** Of NodeJsExit: the event loop ran empty before the handler was done. */
export const NEVER_SETTLED =
  'The Lambda runtime client detected an unexpected Node.js exit code. This is most commonly caused by a Promise that was never settled. For more information, see https://nodejs.org/docs/latest/api/process.html#exit-codes'
export const UserCodeSyntaxError = define(
  'UserCodeSyntaxError',
  class extends RuntimeError {
    constructor(cause) {
      super(String(cause))
      this.stack = cause.stack // names the file and the line
    }
  },
)
export const UnhandledPromiseRejection = define(
  'UnhandledPromiseRejection',
  class extends RuntimeError {
    constructor(reason, promise) {
      super(reason)
      this.reason = reason
      this.promise = promise
    }
  },
)

export function asError(error) {
  return error instanceof Error ? error : new Error(error)
}

function looksLikeError(value) {
  return ['name', 'message', 'stack'].every((key) => value?.[key] && typeof value[key] === 'string')
}

/** The error object of the Runtime API: { errorType, errorMessage, trace }. Anything can be thrown. */
export function reported(error) {
  try {
    if (types.isNativeError(error) || looksLikeError(error)) {
      return { errorType: error.name, errorMessage: error.message, trace: error.stack.split('\n') }
    }
    return { errorType: typeof error, errorMessage: error.toString(), trace: [] }
  } catch {
    return {
      errorType: 'handled',
      errorMessage:
        'callback called with Error argument, but there was a problem while retrieving one or more of its message, name, and stack',
    }
  }
}

// Name, message, code and stack are not enumerable; whatever else the function has put on the error comes along.
function withHiddenProperties(_key, value) {
  if (!(value instanceof Error)) return value
  const { name, message, code, stack } = value
  const properties = { errorType: name, errorMessage: message, code, ...value }
  if (typeof stack === 'string') properties.stack = stack.split('\n')
  return properties
}

/** The error as the log shows it: a tab and JSON. */
export function formatError(error) {
  try {
    return '\t' + JSON.stringify(error, withHiddenProperties)
  } catch {
    return '\t' + JSON.stringify(reported(error))
  }
}
