// Hostile and broken archives: each is refused with the service's text, and nothing of it stays.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { rememberState } from '../lib/intact.mjs'
import { createFunction, invoke, pythonZip, ROLE, startKiln, zip } from '../lib/kiln.mjs'

const SOURCE = 'def handler(event, context):\n    return 1\n'
const SYMLINK = 0o120777
let kiln
let lambda

before(async () => {
  kiln = await startKiln()
  lambda = kiln.lambda
  await createFunction(lambda, { FunctionName: 'packed', Code: { ZipFile: pythonZip(SOURCE) } })
})

after(() => kiln?.stop())

function send(operation, parameters) {
  return lambda.send(new sdk[`${operation}Command`](parameters))
}

const creation = (ZipFile, parameters) => ({
  FunctionName: 'made', Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile }, ...parameters,
})

const UNZIP = 'Could not unzip uploaded file. Please check your file, then try to upload again.'
const good = pythonZip(SOURCE)

/** The same archive twice over: its central directory names index.py two times. */
function doubled() {
  const archive = zip({ 'index.py': SOURCE, 'indey.py': SOURCE })
  for (let at = archive.indexOf('indey.py'); at >= 0; at = archive.indexOf('indey.py', at + 1)) archive.write('index.py', at)
  return archive
}

function damaged(change) {
  const archive = Buffer.from(zip({ 'index.py': SOURCE.repeat(50) }))
  change(archive)
  return archive
}

const HOSTILE = {
  'a path that leads out': zip({ '../../../tmp/kiln-escape': 'x' }),
  'a path that leads out later': zip({ 'a/../../../tmp/kiln-escape': 'x' }),
  'an absolute path': zip({ '/tmp/kiln-escape': 'x' }),
  'a link to an absolute path': zip({ link: { content: '/etc/passwd', mode: SYMLINK } }),
  'a link that leads out': zip({ 'a/link': { content: '../../outside', mode: SYMLINK } }),
  'a file below a link': zip({ link: { content: '.', mode: SYMLINK }, 'link/../../file': 'x' }),
  'a device': zip({ null: { content: '', mode: 0o020666 } }),
  'the same entry twice': doubled(),
  'a file where a directory is': zip({ 'a/b': 'x', a: 'y' }),
  'a name of 1025 bytes': zip({ ['n/'.repeat(512) + 'm']: 'x' }),
  'no zip at all': Buffer.from('this is not a zip archive'),
  'a truncated archive': good.subarray(0, good.length - 30),
  'half an archive': good.subarray(0, good.length >> 1),
  'a wrong checksum': damaged((archive) => archive.writeUInt32LE(1, 14) && archive.writeUInt32LE(1, archive.indexOf('PK\x01\x02') + 16)),
  'damaged contents': damaged((archive) => archive.fill(0xff, 40, 60)),
  'an encrypted entry': damaged((archive) => {
    archive.writeUInt16LE(0x801, 6)
    archive.writeUInt16LE(0x801, archive.indexOf('PK\x01\x02') + 8)
  }),
}

for (const [what, archive] of Object.entries(HOSTILE)) {
  test(`${what}: refused, and nothing is left`, async () => {
    const assertUnchanged = await rememberState(kiln)
    for (const [operation, parameters] of [
      ['CreateFunction', creation(archive)],
      ['UpdateFunctionCode', { FunctionName: 'packed', ZipFile: archive }],
    ]) {
      await assert.rejects(send(operation, parameters), (error) => {
        assert.equal(error.name, 'InvalidParameterValueException')
        assert.equal(error.message, UNZIP)
        assert.equal(error.$metadata.httpStatusCode, 400)
        return true
      }, operation)
    }
    await assertUnchanged()
    assert.ok(!existsSync('/tmp/kiln-escape'))
    assert.equal((await invoke(lambda, 'packed')).payload, 1)
  })
}

test('an archive without files is refused', async () => {
  const assertUnchanged = await rememberState(kiln)
  for (const archive of [zip({}), zip({ 'folder/': { content: '', mode: 0o040755 } })]) {
    await assert.rejects(send('CreateFunction', creation(archive)), (error) => {
      assert.equal(error.name, 'InvalidParameterValueException')
      assert.match(error.message, /^Uploaded file must be a non-empty zip$/)
      return true
    })
  }
  await assertUnchanged()
})

test('a zip bomb of many entries is refused', async () => {
  const assertUnchanged = await rememberState(kiln)
  const megabytes = Buffer.alloc(16 << 20)
  const bomb = zip(Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`zeros-${i}`, megabytes])))
  assert.ok(bomb.length < 1 << 20)
  await assert.rejects(send('CreateFunction', creation(bomb)), { name: 'InvalidParameterValueException', message: 'Unzipped size must be smaller than 262144000 bytes' })
  await assertUnchanged()
})

test('links inside the package, modes and names in Unicode are kept', async () => {
  const source = `import os
def handler(event, context):
    return [open("/var/task/lib/link").read(), open("/var/task/däta/値").read(), oct(os.stat("/var/task/tool").st_mode & 0o777),
            os.access("/var/task/index.py", os.W_OK), sorted(os.listdir("/var/task"))]
`
  const archive = zip({
    'index.py': source,
    'data': 'linked',
    'lib/link': { content: '../data', mode: SYMLINK },
    'däta/値': 'unicode',
    'tool': { content: '#!/bin/sh\n', mode: 0o755 },
  })
  await createFunction(lambda, { FunctionName: 'kept', Code: { ZipFile: archive } })
  assert.deepEqual((await invoke(lambda, 'kept')).payload,
    ['linked', 'unicode', '0o755', false, ['data', 'däta', 'index.py', 'lib', 'tool']])
})

test('a package is kept once however many functions use it, and goes with the last', async () => {
  const assertUnchanged = await rememberState(kiln)
  const archive = zip({ 'index.py': `${SOURCE}# shared\n` })
  for (const FunctionName of ['one', 'two']) await send('CreateFunction', creation(archive, { FunctionName }))
  await send('DeleteFunction', { FunctionName: 'one' })
  await sdk.waitUntilFunctionActiveV2({ client: lambda, minDelay: 1, maxWaitTime: 20 }, { FunctionName: 'two' })
  assert.equal((await invoke(lambda, 'two')).payload, 1)
  const { Code } = await send('GetFunction', { FunctionName: 'two' })
  const downloaded = Buffer.from(await (await fetch(Code.Location)).arrayBuffer())
  assert.ok(downloaded.equals(archive))
  await send('DeleteFunction', { FunctionName: 'two' })
  await assertUnchanged()
})
