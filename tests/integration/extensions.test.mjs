// Extensions as they are written: a shell script with curl and a Python program that collects telemetry, both from
// layers beside a Python function, and an internal one within a Python function.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  PublishLayerVersionCommand, UpdateFunctionConfigurationCommand, waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda'
import { logHas } from '../lib/function_logs.mjs'
import { createFunction, invoke, IS_ROOT, pythonZip, startKiln, waitUntil, zip } from '../lib/kiln.mjs'

// Each environment has the loopback to itself, so that a fixed port can be listened on.
let kiln
before(async () => (kiln = await startKiln({ args: IS_ROOT ? ['--network', 'none'] : [] })))
after(() => kiln.stop())

const publish = async (LayerName, files) =>
  (await kiln.lambda.send(new PublishLayerVersionCommand({ LayerName, Content: { ZipFile: zip(files) } }))).LayerVersionArn

const create = (FunctionName, source, parameters = {}) =>
  createFunction(kiln.lambda, { FunctionName, Timeout: 10, Code: { ZipFile: pythonZip(source) }, ...parameters })

/** A change of the configuration ends the environments of the old one. */
async function replaceEnvironments(FunctionName) {
  await kiln.lambda.send(new UpdateFunctionConfigurationCommand({ FunctionName, Description: `${Math.random()}` }))
  await waitUntilFunctionUpdatedV2({ client: kiln.lambda, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { FunctionName })
}

const WATCHER = `#!/bin/sh
api=http://$AWS_LAMBDA_RUNTIME_API/2020-01-01/extension
id=$(curl -s -D - -o /dev/null -X POST $api/register -H "Lambda-Extension-Name: watcher.sh" \\
  -d '{"events":["INVOKE","SHUTDOWN"]}' | tr -d '\\r' | sed -n 's/^lambda-extension-identifier: //Ip')
while :; do
  event=$(curl -s $api/event/next -H "Lambda-Extension-Identifier: $id")
  echo "WATCHER $event"
  case $event in *SHUTDOWN*) exit 0 ;; esac
done
`

test('a shell extension hears of invocations, and of the end and its reason', async () => {
  const layer = await publish('watcher', { 'extensions/watcher.sh': { content: WATCHER, mode: 0o755 } })
  await create('watched', `
import os
def handler(event, context):
    if event.get("exit"): os._exit(3)
    return sorted(os.listdir("/opt/extensions"))`, { Layers: [layer] })
  const answer = await invoke(kiln.lambda, 'watched')
  assert.deepEqual(answer.payload, ['watcher.sh'])
  assert.equal((await invoke(kiln.lambda, 'watched', { exit: true })).payload.errorType, 'Runtime.ExitError')
  await logHas(kiln, 'watched', '"shutdownReason":"failure"')
  await invoke(kiln.lambda, 'watched')
  await replaceEnvironments('watched')
  const log = await logHas(kiln, 'watched', '"shutdownReason":"spindown"')
  assert.match(log, /EXTENSION\tName: watcher\.sh\tState: Ready\tEvents: \[INVOKE, SHUTDOWN\]/)
  assert.match(log, /WATCHER \{"eventType":"INVOKE","deadlineMs":\d{13},"requestId":"[0-9a-f-]{36}","invokedFunctionArn":"arn:/)
  assert.equal(log.match(/WATCHER \{"eventType":"INVOKE"/g).length, 3)
})

const COLLECTOR = `#!/usr/bin/env python3
import http.server, json, os, threading, urllib.request
BASE = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"]
def call(method, path, body=None, **headers):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(BASE + path, data, {k.replace("_", "-"): v for k, v in headers.items()}, method=method)
    with urllib.request.urlopen(request) as response:
        return response.headers, json.load(response)
class Listener(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        batch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open("/tmp/telemetry", "a") as file:
            for event in batch: file.write(json.dumps(event) + "\\n")
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args): pass
headers, _ = call("POST", "/2020-01-01/extension/register", {"events": ["INVOKE"]}, Lambda_Extension_Name="collector.py")
me = headers["Lambda-Extension-Identifier"]
server = http.server.HTTPServer(("sandbox.localdomain", 4243), Listener)
threading.Thread(target=server.serve_forever, daemon=True).start()
call("PUT", "/2022-07-01/telemetry", {
    "schemaVersion": "2022-12-13", "types": ["platform", "function"], "buffering": {"timeoutMs": 25},
    "destination": {"protocol": "HTTP", "URI": "http://sandbox.localdomain:4243"}}, Lambda_Extension_Identifier=me)
print("COLLECTOR is ready", flush=True)
while True:
    call("GET", "/2020-01-01/extension/event/next", Lambda_Extension_Identifier=me)
`

test('a Python extension collects the telemetry of a cold and a warm invocation', async () => {
  const layer = await publish('collector', { 'extensions/collector.py': { content: COLLECTOR, mode: 0o755 } })
  await create('collected', `
import json
def handler(event, context):
    print("hello from", event.get("call"))
    try:
        return [json.loads(line) for line in open("/tmp/telemetry")]
    except FileNotFoundError:
        return []`, { Layers: [layer], MemorySize: 256 })
  let call = 0
  const events = await waitUntil(async () => {
    const { payload } = await invoke(kiln.lambda, 'collected', { call: call++ })
    return payload.filter(({ type }) => type === 'platform.report').length >= 2 ? payload : undefined
  }, { what: 'telemetry of two invocations' })
  const types = events.map(({ type }) => type)
  assert.equal(types[0], 'platform.initStart')
  for (const type of ['platform.telemetrySubscription', 'platform.initRuntimeDone', 'platform.extension', 'platform.initReport'])
    assert.equal(types.filter((each) => each === type).length, 1, type)
  const first = types.indexOf('platform.start')
  assert.ok(first > types.indexOf('platform.initReport'))
  assert.deepEqual(types.slice(first, first + 8), [
    'platform.start', 'function', 'platform.runtimeDone', 'platform.report',
    'platform.start', 'function', 'platform.runtimeDone', 'platform.report',
  ])
  const [start, line, done, report] = events.slice(first)
  assert.equal(line.record, 'hello from 0')
  assert.equal(done.record.requestId, start.record.requestId)
  assert.equal(done.record.status, 'success')
  assert.deepEqual(done.record.spans.map(({ name }) => name), ['responseLatency', 'responseDuration', 'runtimeOverhead'])
  assert.equal(report.record.metrics.memorySizeMB, 256)
  assert.ok(report.record.metrics.initDurationMs > 0)
  for (const { time } of events) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('an extension that exits in Init is named to the caller and in the log', async () => {
  const layer = await publish('leaver', { 'extensions/leaver': { content: '#!/bin/sh\nexit 7\n', mode: 0o755 } })
  await create('left', 'def handler(event, context): return 1', { Layers: [layer] })
  const { functionError, payload } = await invoke(kiln.lambda, 'left')
  assert.equal(functionError, 'Unhandled')
  assert.equal(payload.errorType, 'Extension.Crash')
  assert.match(payload.errorMessage, /^RequestId: [0-9a-f-]{36} Error: exit status 7$/)
  await logHas(kiln, 'left', 'Phase: init\tStatus: error\tError Type: Extension.Crash')
})

test('an internal extension lives in the runtime process', async () => {
  await create('inside', `
import json, os, threading, urllib.request
BASE = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2020-01-01/extension/"
heard = []
def call(path, body=None, **headers):
    request = urllib.request.Request(BASE + path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    with urllib.request.urlopen(request) as response:
        return response.headers, json.load(response)
headers, about = call("register", b'{"events":["INVOKE"]}', Lambda_Extension_Name="inside", Lambda_Extension_Accept_Feature="accountId")
def listen():
    while True:
        heard.append(call("event/next", Lambda_Extension_Identifier=headers["Lambda-Extension-Identifier"])[1]["requestId"])
threading.Thread(target=listen, daemon=True).start()
def handler(event, context):
    while len(heard) == 0 or heard[-1] != context.aws_request_id: pass
    return {"about": about, "heard": len(heard)}`)
  const about = { functionName: 'inside', functionVersion: '$LATEST', handler: 'index.handler', accountId: '000000000000' }
  for (let i = 1; i <= 3; i++) assert.deepEqual((await invoke(kiln.lambda, 'inside')).payload, { about, heard: i })
  await logHas(kiln, 'inside', 'EXTENSION\tName: inside\tState: Ready\tEvents: [INVOKE]')
})
