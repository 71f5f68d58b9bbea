// console writes one event of the log for each call, as on the service: time, request id, level and message between tabs,
// or JSON where LoggingConfig says so (AWS_LAMBDA_LOG_FORMAT). Where the service takes frames
// (_LAMBDA_TELEMETRY_LOG_FD) a message of several lines stays one event.
import { writeSync } from 'node:fs'
import { format } from 'node:util'
import { asError, formatError } from './errors.mjs'

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']
const METHODS = { trace: 'TRACE', debug: 'DEBUG', info: 'INFO', log: 'INFO', warn: 'WARN', error: 'ERROR', fatal: 'FATAL' }
const FRAME_TEXT = 0xa55a0003
const FRAME_JSON = 0xa55a0002
const FRAME_HEADER_BYTES = 16

const isJson = process.env.AWS_LAMBDA_LOG_FORMAT?.toUpperCase() === 'JSON'
const frameFd = process.env._LAMBDA_TELEMETRY_LOG_FD === undefined ? undefined : Number(process.env._LAMBDA_TELEMETRY_LOG_FD)
delete process.env._LAMBDA_TELEMETRY_LOG_FD

let requestId
let tenantId

export function setRequest(id, tenant) {
  requestId = id
  tenantId = tenant
}

/** Writes all of it, though the pipe be full for a while. */
function writeFully(fd, bytes) {
  while (bytes.length) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes))
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

// Type with the level in it, length, time in microseconds, message.
function writeFrame(level, message) {
  const text = Buffer.from(message)
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + text.length)
  frame.writeUInt32BE(((isJson ? FRAME_JSON : FRAME_TEXT) | ((LEVELS.indexOf(level) + 1) << 2)) >>> 0, 0)
  frame.writeUInt32BE(text.length, 4)
  frame.writeBigInt64BE(BigInt(Date.now()) * 1000n, 8)
  text.copy(frame, FRAME_HEADER_BYTES)
  writeFully(frameFd, frame)
}

function errorFields(error) {
  return {
    errorType: error?.constructor?.name ?? 'UnknownError',
    errorMessage: error.message,
    stackTrace: typeof error.stack === 'string' ? error.stack.split('\n') : error.stack,
  }
}

const withErrors = (_key, value) => (value instanceof Error ? { ...errorFields(value), ...value } : value)

/** One argument is the message as it is; several are formatted, and the first error among them has its own members. */
function jsonMessage(level, parts) {
  const line = { timestamp: new Date().toISOString(), level, requestId }
  if (tenantId) line.tenantId = tenantId
  if (parts.length === 1) {
    try {
      return JSON.stringify({ ...line, message: parts[0] }, withErrors)
    } catch {
      return JSON.stringify({ ...line, message: format(parts[0]) }) // circular, or a BigInt
    }
  }
  const error = parts.find((part) => part instanceof Error)
  return JSON.stringify({ ...line, message: format(...parts), ...(error && errorFields(error)) })
}

function textMessage(level, parts) {
  return `${new Date().toISOString()}\t${requestId}\t${level}\t${format(...parts)}`
}

function write(level, parts) {
  const message = isJson ? jsonMessage(level, parts) : textMessage(level, parts)
  if (frameFd === undefined) process.stdout.write(message + '\n')
  else writeFrame(level, isJson ? message : message + '\n')
}

/** Replaces the methods of console; those below AWS_LAMBDA_LOG_LEVEL say nothing. */
export function patchConsole() {
  const lowest = LEVELS.indexOf(process.env.AWS_LAMBDA_LOG_LEVEL?.toUpperCase())
  for (const [method, level] of Object.entries(METHODS)) {
    const silent = level !== 'FATAL' && LEVELS.indexOf(level) < lowest
    console[method] = silent ? () => {} : (...parts) => write(level, parts)
  }
}

/** What ended an invocation or the process. */
export function logError(title, error) {
  if (isJson) console.error(asError(error))
  else console.error(title, formatError(asError(error)))
}
