// HTTP/1.1 over one kept-alive connection. While a handler runs the connection does not keep the event loop alive, which
// is how "the event loop is empty" can be noticed.
import { connect } from 'node:net'

const PREFIX = '/2018-06-01/runtime/'
const ERROR_TYPE = 'Lambda-Runtime-Function-Error-Type'
const ERROR_BODY = 'Lambda-Runtime-Function-Error-Body'

export class RuntimeApi {
  #address
  #socket
  #received = [] // chunks of the answer being read
  #length = 0
  #pending // { resolve, reject } of the exchange under way

  constructor(address) {
    this.#address = address
  }

  async next() {
    const answer = await this.#exchange('GET', 'invocation/next')
    if (answer.status !== 200) throw new Error(`the Runtime API answered ${answer.status} to invocation/next`)
    return answer
  }

  async postResponse(path, body) {
    this.#check(await this.#exchange('POST', path, body))
  }

  async postError(path, error) {
    const body = Buffer.from(JSON.stringify(error))
    this.#check(await this.#exchange('POST', path, body, error.errorType))
  }

  /**
   * Begins to post an answer in pieces. write(chunk, done) and end(error) are for its pieces and its end; `error`, when
   * given, goes into the trailers.
   */
  beginStream(path, contentType) {
    const answer = this.#send(
      `POST ${PREFIX}${path} HTTP/1.1\r\nHost: ${this.#address}\r\nContent-Type: ${headerValue(contentType)}\r\n` +
        'Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\n' +
        `Trailer: ${ERROR_TYPE}, ${ERROR_BODY}\r\n\r\n`,
    )
    const socket = this.#socket
    answer.catch(() => {}) // end() tells
    socket.unref() // writes under way keep the event loop alive
    return {
      write(chunk, done) {
        if (!chunk.length) return done?.()
        socket.cork()
        socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
        socket.write(chunk)
        socket.write('\r\n', 'latin1', done)
        socket.uncork()
      },
      end: async (error) => {
        socket.ref()
        socket.write(`0\r\n${error ? trailers(error) : ''}\r\n`, 'latin1')
        this.#check(await answer)
      },
    }
  }

  // 413 and 400 end an invocation, and the next one is asked for; 500 means that the environment is broken.
  #check({ status }) {
    if (status >= 500) throw new Error(`the Runtime API answered ${status} to the result of an invocation`)
  }

  async #exchange(method, path, body, errorType) {
    let head = `${method} ${PREFIX}${path} HTTP/1.1\r\nHost: ${this.#address}\r\n`
    if (body) head += `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    if (errorType) head += `${ERROR_TYPE}: ${headerValue(errorType)}\r\n`
    const reused = this.#socket !== undefined
    try {
      return await this.#send(head + '\r\n', body)
    } catch (error) {
      // A kept-alive connection may have been closed in between; nothing of an answer has come then.
      if (!reused || error.answered) throw error
      return this.#send(head + '\r\n', body)
    }
  }

  #send(head, body) {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
      const socket = (this.#socket ??= this.#open())
      socket.ref()
      socket.cork()
      socket.write(head, 'latin1')
      if (body) socket.write(body)
      socket.uncork()
    })
  }

  #open() {
    const [, host, port] = this.#address.match(/^(.*):(\d+)$/)
    const socket = connect({ host, port: Number(port), noDelay: true })
    socket.on('data', (chunk) => this.#receive(chunk))
    socket.on('error', (error) => this.#lose(socket, error))
    socket.on('close', () => this.#lose(socket, new Error('the Runtime API closed the connection')))
    return socket
  }

  #lose(socket, error) {
    if (socket !== this.#socket) return // after its error, when another may have been opened already
    const pending = this.#pending
    error.answered = this.#length > 0
    this.#socket = this.#pending = undefined
    this.#received = []
    this.#length = 0
    pending?.reject(error)
  }

  #receive(chunk) {
    this.#received.push(chunk)
    this.#length += chunk.length
    if (this.wanted && this.#length < this.wanted) return
    const data = this.#received.length === 1 ? chunk : Buffer.concat(this.#received)
    this.#received = [data]
    const answer = parse(data)
    this.wanted = answer.wanted // known once the head is there, so that a large body is put together once
    if (!answer.body) return
    this.#received = []
    this.#length = 0
    this.wanted = undefined
    const pending = this.#pending
    this.#pending = undefined
    this.#socket.unref()
    pending?.resolve(answer)
  }
}

function trailers(error) {
  const body = Buffer.from(JSON.stringify(error)).toString('base64')
  return `${ERROR_TYPE}: ${headerValue(error.errorType)}\r\n${ERROR_BODY}: ${body}\r\n`
}

function headerValue(text) {
  return text.replace(/[^\x20-\x7e]/g, '?')
}

// { status, headers, body }, where body is missing until all of it is there; wanted: how many bytes that takes.
function parse(data) {
  const end = data.indexOf('\r\n\r\n')
  if (end < 0) return {}
  const [first, ...lines] = data.toString('latin1', 0, end).split('\r\n')
  const headers = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  const status = Number(first.split(' ')[1])
  const start = end + 4
  if (headers['transfer-encoding']?.toLowerCase() === 'chunked') return { status, headers, body: dechunk(data, start) }
  const wanted = start + Number(headers['content-length'] ?? 0)
  return { status, headers, wanted, body: data.length >= wanted ? data.subarray(start, wanted) : undefined }
}

function dechunk(data, at) {
  const parts = []
  for (;;) {
    const end = data.indexOf('\r\n', at)
    if (end < 0) return undefined
    const size = parseInt(data.toString('latin1', at, end), 16)
    at = end + 2
    if (data.length < at + size + 2) return undefined
    if (size === 0) return Buffer.concat(parts)
    parts.push(data.subarray(at, at + size))
    at += size + 2
  }
}
