// Every recorded sequence once more, over HTTP and with the SDK. Whole answers must be as recorded; what the recorded
// functions did when they were invoked is done here by functions of our own.
import { after, before, describe, test } from 'node:test'
import { recordedSequences, Replay } from '../lib/recorded.mjs'
import { IS_ROOT, startKiln } from '../lib/kiln.mjs'

// Not replayed, by a part of the name, with the reason.
const EXCEPTIONS = {
  test_advanced_logging_configuration_format_switch: 'the JSON log format is refused until it is written',
  test_lambda_concurrent_code_updates: 'a race between two requests; replayed without a network by the unit tests',
  test_lambda_concurrent_config_updates: 'likewise',
  test_mixed_architecture: 'needs a host that runs both architectures',
}
// The recorded address of the Runtime API is that of a network namespace.
if (!IS_ROOT) EXCEPTIONS.test_lambda_init_environment = 'needs root, for a network of its own'

// Where another text than the recorded one is right: the interpreters are the host's, not in /var/lang.
const CORRECTIONS = { test_lambda_init_environment: ['/var/lang/lib:', '/var/lang/bin:'] }

// A look is recorded that came before an update was through; here the update may be faster.
const LATE = ['test_lambda_code_location_zipfile', 'test_lambda_code_location_s3']

const VERSION = (id) => `def handler(event, context):
    return {"version_id": "version${id}", "invoked_arn": context.invoked_function_arn,
            "version_from_ctx": context.function_version}
`
const INTROSPECTION = `def handler(event, context):
    names = ["invoked_function_arn", "function_version", "function_name", "memory_limit_in_mb", "aws_request_id",
             "log_group_name", "log_stream_name", "client_context"]
    return {"event": event, "context": {name: getattr(context, name) for name in names}}
`
const ENVIRONMENT = `import os
def handler(event, context):
    return {"environment": dict(os.environ)}
`
const HANDLERS = `def handler(event, context):
    return {"handler": "handler"}
def handler_two(event, context):
    return {"handler": "handler_two"}
`

// What the packages hold where the recorded payload matters: the source, by the how-manieth package it is.
const SOURCES = {
  test_lambda_versions_with_code_changes: VERSION,
  test_lambda_alias_moving: VERSION,
  test_alias_routingconfig: VERSION,
  test_invocation_with_qualifier: () => INTROSPECTION,
  test_upload_lambda_from_s3: () => INTROSPECTION,
  test_lambda_init_environment: () => ENVIRONMENT,
  test_lambda_handler_update: () => HANDLERS,
}

function packages(name) {
  const source = Object.entries(SOURCES).find(([part]) => name.includes(part))?.[1]
  const seen = []
  return ({ $zip: content, file }) => {
    if (!seen.includes(content)) seen.push(content)
    return { [file]: source ? source(seen.indexOf(content) + 1) : content }
  }
}

describe('recorded sequences', { concurrency: 4 }, () => {
  const table = {}
  let kiln

  before(async () => {
    kiln = await startKiln({ args: IS_ROOT ? ['--network', 'none'] : [] })
  })

  after(async () => {
    console.table(table)
    await kiln?.stop()
  })

  Object.entries(recordedSequences(CORRECTIONS)).forEach(([name, { steps }], index) => {
    const exception = Object.entries(EXCEPTIONS).find(([part]) => name.includes(part))
    if (exception) return console.log(`not replayed: ${name}: ${exception[1]}`)
    test(name, async () => {
      const account = String(100_000_000_001 + index)
      const client = kiln.client({ credentials: { accessKeyId: account, secretAccessKey: 'any' } })
      const comesLate = LATE.some((part) => name.includes(part))
      const replay = new Replay(client, { account, packageFor: packages(name), comesLate })
      for (const [at, step] of steps.entries()) {
        if (step.skip) continue
        const row = (table[step.operation] ??= { sent: 0, compared: 0, different: 0 })
        row.sent++
        try {
          if (await replay.step(at, step)) row.compared++
        } catch (error) {
          row.different++
          throw error
        }
      }
      client.destroy()
    })
  })
})
