// console writes lines as the service does: time, request id, level and message between tabs.
import { format } from 'node:util'

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']
const METHODS = { trace: 'TRACE', debug: 'DEBUG', info: 'INFO', log: 'INFO', warn: 'WARN', error: 'ERROR', fatal: 'FATAL' }

let requestId

export function setRequestId(id) {
  requestId = id
}

function write(level, parts) {
  process.stdout.write(`${new Date().toISOString()}\t${requestId}\t${level}\t${format(...parts)}\n`)
}

/** Replaces the methods of console; those below AWS_LAMBDA_LOG_LEVEL say nothing. */
export function patchConsole() {
  const lowest = LEVELS.indexOf(process.env.AWS_LAMBDA_LOG_LEVEL?.toUpperCase())
  for (const [method, level] of Object.entries(METHODS)) {
    const silent = level !== 'FATAL' && LEVELS.indexOf(level) < lowest
    console[method] = silent ? () => {} : (...parts) => write(level, parts)
  }
}
