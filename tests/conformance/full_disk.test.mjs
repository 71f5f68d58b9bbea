// A file system that is full: refusals that say so, nothing half done, and everything works again once there is room.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import * as sdk from '@aws-sdk/client-lambda'
import { createFunction, invoke, IS_ROOT, ROLE, startKiln, temporaryDirectory, waitUntil, zip } from '../lib/kiln.mjs'
import { rememberState } from '../lib/intact.mjs'

const SOURCE = 'def handler(event, context):\n    return 1\n'

test('a full disk refuses changes and loses nothing', { skip: !IS_ROOT && 'needs root to mount a small file system' }, async (t) => {
  const dataDir = temporaryDirectory()
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', dataDir])
  t.after(() => {
    execFileSync('umount', [dataDir])
    rmSync(dataDir, { recursive: true })
  })
  let kiln = await startKiln({ dataDir })
  const create = (FunctionName, ZipFile) =>
    kiln.lambda.send(new sdk.CreateFunctionCommand({
      FunctionName, Runtime: 'python3.12', Handler: 'index.handler', Role: ROLE, Code: { ZipFile },
    }))
  const isFull = (error) => {
    assert.equal(error.name, 'ServiceException')
    assert.equal(error.$metadata.httpStatusCode, 500)
    assert.equal(error.message, "The data directory's file system is full.")
    return true
  }
  await createFunction(kiln.lambda, { FunctionName: 'early', Code: { ZipFile: zip({ 'index.py': SOURCE }) } })
  assert.equal((await invoke(kiln.lambda, 'early')).payload, 1)

  let assertUnchanged = await rememberState(kiln)
  const large = zip({ 'index.py': SOURCE, noise: randomBytes(20 << 20) })
  await assert.rejects(create('large', large), isFull)
  await assertUnchanged()

  const filler = join(dataDir, 'filler')
  const { bavail, bsize } = statfsSync(dataDir)
  writeFileSync(filler, Buffer.alloc(bavail * bsize))
  const refused = []
  for (let i = 0; i < 5; i++) {
    await create(`late-${i}`, zip({ 'index.py': `${SOURCE}# ${i}\n` })).then(() => refused.push(false), (error) => refused.push(isFull(error)))
  }
  assert.ok(refused.every(Boolean), 'there is no room for a package')
  assert.equal((await invoke(kiln.lambda, 'early')).payload, 1, 'what is there still runs')
  await assertUnchanged()

  rmSync(filler)
  await createFunction(kiln.lambda, { FunctionName: 'later', Code: { ZipFile: zip({ 'index.py': SOURCE }) } })
  assert.equal((await invoke(kiln.lambda, 'later')).payload, 1)
  await kiln.stop()

  kiln = await startKiln({ dataDir })
  const { Functions } = await kiln.lambda.send(new sdk.ListFunctionsCommand({}))
  assert.deepEqual(Functions.map(({ FunctionName }) => FunctionName), ['early', 'later'])
  await waitUntil(async () => (await invoke(kiln.lambda, 'early')).payload === 1)
  await kiln.stop()
})
