// HTTP as bytes, for what no client library would send.
import { connect } from 'node:net'

/** Opens a connection: { socket, response } where response() resolves with the next answer, or throws at the end. */
export async function openRaw(port) {
  const socket = connect({ port, host: '127.0.0.1' })
  await new Promise((done, fail) => socket.once('connect', done).once('error', fail))
  socket.on('error', () => {}) // seen as the end of the connection
  let received = Buffer.alloc(0)
  let ended = false
  let wake = () => {}
  socket.on('data', (bytes) => {
    received = Buffer.concat([received, bytes])
    wake()
  })
  socket.on('close', () => {
    ended = true
    wake()
  })
  const response = async () => {
    for (;;) {
      const parsed = parseResponse(received)
      if (parsed) {
        received = received.subarray(parsed.length)
        return parsed
      }
      if (ended) throw new Error(`the connection ended after ${JSON.stringify(received.toString())}`)
      await new Promise((done) => (wake = done))
    }
  }
  return { socket, response }
}

function parseResponse(bytes) {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const [statusLine, ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]))
  const length = headEnd + 4 + Number(headers['content-length'] ?? 0)
  if (bytes.length < length) return undefined
  const text = bytes.subarray(headEnd + 4, length).toString()
  return { status: Number(statusLine.split(' ')[1]), headers, text, length, json: () => JSON.parse(text) }
}

/** One exchange on a connection of its own. `parts` are written one after the other. */
export async function exchangeRaw(port, ...parts) {
  const { socket, response } = await openRaw(port)
  for (const part of parts) socket.write(part)
  try {
    return await response()
  } finally {
    socket.destroy()
  }
}
