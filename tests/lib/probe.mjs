// The function of tests/functions/probe.c as a package: compiled once per test process, static, a few milliseconds to
// start. It runs in every environment as provided.al2023.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createFunction, REPOSITORY, temporaryDirectory, zip } from './kiln.mjs'

let cached

export function probeZip() {
  if (!cached) {
    const folder = temporaryDirectory()
    const program = join(folder, 'bootstrap')
    execFileSync('cc', ['-O2', '-static', '-o', program, join(REPOSITORY, 'tests/functions/probe.c')])
    cached = zip({ bootstrap: readFileSync(program) })
    rmSync(folder, { recursive: true })
  }
  return cached
}

export function createProbe(client, name, parameters = {}) {
  return createFunction(client, {
    FunctionName: name,
    Runtime: 'provided.al2023',
    Handler: 'bootstrap',
    Code: { ZipFile: probeZip() },
    ...parameters,
  })
}
