// Handlers that write their answer in pieces: awslambda.streamifyResponse and what belongs to it, as AWS's own runtime
// has them (Lambda guide, "Writing handler functions" of response streaming).
import { Writable } from 'node:stream'
import { contextData, setTraceId } from './invocation.mjs'
import { NEVER_SETTLED, NodeJsExit, reported } from './errors.mjs'
import { logError } from './log.mjs'

const STREAMING = Symbol.for('aws.lambda.runtime.handler.streaming')
const HIGH_WATER_MARK = Symbol.for('aws.lambda.runtime.handler.streaming.highWaterMark')
const HTTP_CONTENT_TYPE = 'application/vnd.awslambda.http-integration-response'
const PRELUDE_END = Buffer.alloc(8) // between the JSON of status and headers and the body

/** What the handler writes into. The post to the Runtime API begins with the first byte, so that until then an error can
 * be answered like any other. */
class ResponseStream extends Writable {
  #begin
  #post
  #contentType = 'application/octet-stream'
  #prelude

  constructor(begin, options) {
    super(options)
    this.#begin = begin
  }

  get hasBegun() {
    return this.#post !== undefined
  }

  setContentType(type) {
    this.#contentType = type
  }

  setPrelude(prelude) {
    this.#prelude = prelude
  }

  #open() {
    if (!this.#post) {
      this.#post = this.#begin(this.#contentType)
      if (this.#prelude) this.#post.write(this.#prelude)
    }
    return this.#post
  }

  _write(chunk, _encoding, done) {
    this.#open().write(chunk, done)
  }

  _final(done) {
    this.#open().end().then(() => done(), done)
  }

  /** Ends what has begun: the trailers tell the caller of the error. */
  async breakOff(error) {
    await this.#post.end(error)
    this.destroy()
  }
}

/** The global `awslambda`. */
export const awslambda = {
  streamifyResponse(handler, options) {
    handler[STREAMING] = 'response'
    if (options?.highWaterMark !== undefined) handler[HIGH_WATER_MARK] = parseInt(options.highWaterMark)
    return handler
  },
  HttpResponseStream: class HttpResponseStream {
    static from(stream, prelude) {
      stream.setContentType(HTTP_CONTENT_TYPE)
      stream.setPrelude(Buffer.concat([Buffer.from(JSON.stringify(prelude)), PRELUDE_END]))
      return stream
    }
  },
}

export function isStreaming(handler) {
  return handler[STREAMING] === 'response'
}

function finished(stream) {
  return new Promise((resolve, reject) => {
    if (stream.writableFinished) resolve()
    stream.once('finish', resolve)
    stream.once('error', reject)
  })
}

/** Runs the handler and posts all it writes. Resolves when the Runtime API has it, or the error. */
export async function invokeStreaming(handler, headers, body, api, path, beforeExit) {
  const stream = new ResponseStream((type) => api.beginStream(`${path}/response`, type), {
    highWaterMark: handler[HIGH_WATER_MARK],
  })
  stream.on('error', () => {}) // the handler hears of it by its own means, and the outcome below
  const emptied = new Promise((_, reject) => {
    beforeExit.set(() => reject(new NodeJsExit(NEVER_SETTLED)))
  })
  try {
    setTraceId(headers['lambda-runtime-trace-id'])
    const whole = finished(stream)
    const result = handler(JSON.parse(body), stream, { callbackWaitsForEmptyEventLoop: true, ...contextData(headers) })
    await Promise.race([Promise.all([result, whole]), emptied])
  } catch (error) {
    logError('Invoke Error', error)
    if (stream.hasBegun) await stream.breakOff(reported(error))
    else await api.postError(`${path}/error`, reported(error))
  } finally {
    beforeExit.set(undefined)
  }
}
