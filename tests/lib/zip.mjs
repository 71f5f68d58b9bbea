// A zip archive from names and contents, with Unix modes; small enough not to need a package.
import { deflateRawSync } from 'node:zlib'

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1
  return n >>> 0
})

function crc32(bytes) {
  let crc = 0xffffffff
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}

const MADE_BY_UNIX = 3 << 8
const REGULAR_FILE = 0o100000
const UTF8_NAMES = 0x800
const DEFLATED = 8
const FIRST_OF_1980 = 0x21

function header(signature, entry, central) {
  const bytes = Buffer.alloc(central ? 46 : 30)
  let at = bytes.writeUInt32LE(signature, 0)
  if (central) at = bytes.writeUInt16LE(MADE_BY_UNIX | 20, at)
  at = bytes.writeUInt16LE(20, at)
  at = bytes.writeUInt16LE(UTF8_NAMES, at)
  at = bytes.writeUInt16LE(DEFLATED, at)
  at = bytes.writeUInt16LE(0, at)
  at = bytes.writeUInt16LE(FIRST_OF_1980, at)
  at = bytes.writeUInt32LE(entry.crc, at)
  at = bytes.writeUInt32LE(entry.packed.length, at)
  at = bytes.writeUInt32LE(entry.size, at)
  at = bytes.writeUInt16LE(entry.name.length, at)
  if (!central) return Buffer.concat([bytes, entry.name, entry.packed])
  bytes.writeUInt32LE((entry.mode << 16) >>> 0, 38)
  bytes.writeUInt32LE(entry.offset, 42)
  return Buffer.concat([bytes, entry.name])
}

/**
 * files: { 'index.py': 'text' | Buffer | { content, mode } }. Files named `bootstrap` are executable unless a mode says
 * otherwise; a mode may carry the type bits too (0o120777 makes a symbolic link). Names are taken as they are, so that
 * hostile archives can be made.
 */
export function zip(files) {
  const parts = []
  const directory = []
  let offset = 0
  for (const [name, value] of Object.entries(files)) {
    const { content, mode } =
      typeof value === 'string' || Buffer.isBuffer(value)
        ? { content: value, mode: name === 'bootstrap' ? 0o755 : 0o644 }
        : { mode: 0o644, ...value }
    const bytes = Buffer.from(content)
    const entry = {
      name: Buffer.from(name),
      packed: deflateRawSync(bytes),
      size: bytes.length,
      crc: crc32(bytes),
      mode: mode > 0o7777 ? mode : REGULAR_FILE | mode,
      offset,
    }
    const local = header(0x04034b50, entry, false)
    offset += local.length
    parts.push(local)
    directory.push(header(0x02014b50, entry, true))
  }
  const central = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(directory.length, 8)
  end.writeUInt16LE(directory.length, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, central, end])
}
