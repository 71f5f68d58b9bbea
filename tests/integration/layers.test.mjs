// Layers as functions see them: content at /opt in the order of the list, on the paths of the runtimes, and still there
// when their versions are deleted and the daemon is killed.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import {
  DeleteLayerVersionCommand, GetLayerVersionCommand, PublishLayerVersionCommand, UpdateFunctionConfigurationCommand,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda'
import { createFunction, invoke, nodeZip, pythonZip, startKiln, temporaryDirectory, zip } from '../lib/kiln.mjs'
import { PYTHON } from '../lib/programs.mjs'

const dataDir = temporaryDirectory()
let kiln
before(async () => (kiln = await startKiln({ dataDir })))
after(async () => {
  await kiln.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

const executable = (content) => ({ content, mode: 0o755 })
const publish = async (LayerName, files) =>
  (await kiln.lambda.send(new PublishLayerVersionCommand({ LayerName, Content: { ZipFile: zip(files) } }))).LayerVersionArn

async function setLayers(FunctionName, Layers) {
  await kiln.lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName, Layers }))
  await waitUntilFunctionUpdatedV2({ client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { FunctionName })
}

const LOOK = `
import ctypes, os, subprocess
def attempt(action):
    try:
        return action()
    except Exception as error:
        return type(error).__name__
def who():
    import who
    return who.NAME
def versioned():
    import versioned
    return versioned.NAME
def handler(event, context):
    return {
        "who": attempt(who),
        "versioned": attempt(versioned),
        "opt": sorted(os.path.join(folder, file)[5:] for folder, _, files in os.walk("/opt") for file in files),
        "tool": attempt(lambda: subprocess.run(["layer-tool"], capture_output=True, text=True).stdout),
        "library": attempt(lambda: bool(ctypes.CDLL("liblayer.so"))),
        "write": attempt(lambda: open("/opt/new", "w")),
    }
`

test('layers come in order, later ones over earlier ones, on the paths of Python', async () => {
  const [, library] = execFileSync('/sbin/ldconfig', ['-p'], { encoding: 'utf8' }).match(/libdl\.so\.2 \(libc6,.*=> (.*)/)
  const first = await publish('first', {
    'python/who.py': 'NAME = "first"',
    [`python/lib/${PYTHON}/site-packages/versioned.py`]: 'NAME = "versioned"',
    'lib/liblayer.so': readFileSync(library),
    'bin/layer-tool': executable('#!/bin/sh\necho first\n'),
    'name': 'a file',
  })
  const second = await publish('second', {
    'python/who.py': 'NAME = "second"',
    'bin/layer-tool': executable('#!/bin/sh\necho second\n'),
    'name/inside': 'a folder where the first has a file',
  })
  const found = { library: true, write: 'OSError', versioned: 'versioned' }
  await createFunction(kiln.lambda, { FunctionName: 'look', Runtime: PYTHON, Code: { ZipFile: pythonZip(LOOK) }, Timeout: 10, Layers: [first, second] })
  const both = (await invoke(kiln.lambda, 'look')).payload
  assert.deepEqual(both, {
    ...found, who: 'second', tool: 'second\n',
    opt: ['bin/layer-tool', 'lib/liblayer.so', 'name/inside', `python/lib/${PYTHON}/site-packages/versioned.py`, 'python/who.py'],
  })
  await setLayers('look', [second, first])
  const reversed = (await invoke(kiln.lambda, 'look')).payload
  assert.deepEqual([reversed.who, reversed.tool, reversed.opt.includes('name')], ['first', 'first\n', true])
  await setLayers('look', [])
  const none = (await invoke(kiln.lambda, 'look')).payload
  assert.deepEqual(none, { who: 'ModuleNotFoundError', versioned: 'ModuleNotFoundError', opt: [], tool: 'FileNotFoundError', library: 'OSError', write: 'OSError' })
})

test('layers are on the paths of Node.js', async () => {
  const layer = await publish('node', {
    'nodejs/node_modules/plain/index.js': 'module.exports = "plain"',
    'nodejs/node20/node_modules/versioned/index.js': 'module.exports = "versioned"',
  })
  await createFunction(kiln.lambda, {
    FunctionName: 'node', Runtime: 'nodejs20.x', Timeout: 10, Layers: [layer],
    Code: { ZipFile: nodeZip('exports.handler = async () => [require("plain"), require("versioned")]', 'index.js') },
  })
  assert.deepEqual((await invoke(kiln.lambda, 'node')).payload, ['plain', 'versioned'])
})

test('a runtime may come from a layer', async () => {
  const layer = await publish('runtime', {
    bootstrap: executable(`#!/usr/bin/python3
import http.client, os
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
while True:
    api.request("GET", "/2018-06-01/runtime/invocation/next")
    event = api.getresponse()
    event.read()
    api.request("POST", "/2018-06-01/runtime/invocation/" + event.headers["Lambda-Runtime-Aws-Request-Id"] + "/response", '"layer"')
    api.getresponse().read()
`),
  })
  await createFunction(kiln.lambda, { FunctionName: 'custom', Runtime: 'provided.al2023', Timeout: 10, Layers: [layer], Code: { ZipFile: zip({ data: 'x' }) } })
  assert.equal((await invoke(kiln.lambda, 'custom')).payload, 'layer')
})

test('a deleted version stays with the functions that have it, and goes when none is left', async () => {
  const layer = await publish('doomed', { 'python/who.py': 'NAME = "doomed"' })
  await createFunction(kiln.lambda, { FunctionName: 'holder', Runtime: PYTHON, Code: { ZipFile: pythonZip(LOOK) }, Timeout: 10, Layers: [layer] })
  await kiln.lambda.send(new DeleteLayerVersionCommand({ LayerName: 'doomed', VersionNumber: 1 }))
  await kiln.kill()
  kiln = await startKiln({ dataDir })
  assert.equal((await invoke(kiln.lambda, 'holder')).payload.who, 'doomed')
  await assert.rejects(kiln.lambda.send(new GetLayerVersionCommand({ LayerName: 'doomed', VersionNumber: 1 })), { name: 'ResourceNotFoundException' })
  await assert.rejects(setLayers('holder', [layer]), { message: `Layer version ${layer} does not exist.` })
  assert.equal(await publish('doomed', { 'python/who.py': 'NAME = "reborn"' }), layer.replace(/1$/, '2'))
})

test('what Content.Location names is the layer as it was published', async () => {
  const ZipFile = zip({ file: 'content' })
  const { Content } = await kiln.lambda.send(new PublishLayerVersionCommand({ LayerName: 'download', Content: { ZipFile } }))
  assert.deepEqual(Buffer.from(await (await fetch(Content.Location)).arrayBuffer()), Buffer.from(ZipFile))
})
