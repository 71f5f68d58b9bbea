// Signature Version 4 by hand, so that each part of it can be made wrong.
import { createHash, createHmac } from 'node:crypto'

const hash = (text) => createHash('sha256').update(text).digest('hex')
const hmac = (key, text) => createHmac('sha256', key).update(text).digest()
export const EMPTY_HASH = hash('')

/** "20260102T030405Z", `shiftSeconds` from now. */
export function timestamp(shiftSeconds = 0) {
  return new Date(Date.now() + shiftSeconds * 1000).toISOString().replace(/[-:]|\.\d+/g, '')
}

function signature({ secret, scope, time, canonical }) {
  const [date, region, service, terminator] = scope.split('/')
  const key = [date, region, service, terminator].reduce((secretSoFar, part) => hmac(secretSoFar, part), `AWS4${secret}`)
  return hmac(key, ['AWS4-HMAC-SHA256', time, scope, hash(canonical)].join('\n')).toString('hex')
}

const encoded = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
// The path is encoded once more than it is sent.
const canonicalPath = (path) => path.split('/').map(encoded).join('/')

/** Headers for a request. All parts can be overridden. */
export function sign({ method, path, query = '', body = '', host, key, secret, region = 'us-east-1', service = 'lambda', time = timestamp(), extra = {} }) {
  const headers = { host, 'x-amz-date': time, ...extra }
  const names = Object.keys(headers).sort()
  const signed = names.join(';')
  const lines = names.map((name) => `${name}:${headers[name]}\n`).join('')
  const bodyHash = headers['x-amz-content-sha256'] ?? hash(body)
  const canonical = [method, canonicalPath(path), query, lines, signed, bodyHash].join('\n')
  const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`
  const value = signature({ secret, scope, time, canonical })
  delete headers.host
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${key}/${scope}, SignedHeaders=${signed}, Signature=${value}`,
  }
}

/** The query of a presigned URL. */
export function presign({ method, path, host, key, secret, region = 'us-east-1', service = 'lambda', time = timestamp(), expires = 60 }) {
  const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`
  const query = Object.entries({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${key}/${scope}`,
    'X-Amz-Date': time,
    'X-Amz-Expires': String(expires),
    'X-Amz-SignedHeaders': 'host',
  }).map(([name, value]) => `${name}=${encoded(value)}`).join('&')
  const canonical = [method, canonicalPath(path), query, `host:${host}\n`, 'host', EMPTY_HASH].join('\n')
  return `${query}&X-Amz-Signature=${signature({ secret, scope, time, canonical })}`
}
