// Functions that tests look at their environment with.
//
// A program of tests/functions/NAME.c is compiled once per test process, statically, and runs as provided.al2023.
// The Python evaluator runs whatever code the event carries, so that a test shows in one place what is tried inside and
// what must come of it:
//
//   await createPython(kiln.lambda, 'inside')
//   assert.equal(await python(kiln.lambda, 'inside', `result = attempt(lambda: os.setuid(0))`), 'EPERM')
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createFunction, invoke, REPOSITORY, temporaryDirectory, zip } from './kiln.mjs'

const compiled = new Map()

/** The static program of tests/functions/NAME.c as bytes. */
export function program(name) {
  if (!compiled.has(name)) {
    const folder = temporaryDirectory()
    const path = join(folder, name)
    execFileSync('cc', ['-O2', '-static', '-o', path, join(REPOSITORY, `tests/functions/${name}.c`)])
    compiled.set(name, readFileSync(path))
    rmSync(folder, { recursive: true })
  }
  return compiled.get(name)
}

export function createProgram(client, name, source, parameters = {}) {
  return createFunction(client, {
    FunctionName: name,
    Runtime: 'provided.al2023',
    Handler: 'bootstrap',
    Timeout: 30,
    Code: { ZipFile: zip({ bootstrap: program(source) }) },
    ...parameters,
  })
}

// attempt() gives 'OK' or the errno's name; STATE lives as long as the process.
const EVALUATOR = `
import ctypes, errno, json, os, resource, signal, socket, stat, subprocess, sys, threading, time

STATE = {"invokes": 0}

def attempt(action):
    try:
        action()
        return "OK"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))

def read(path):
    with open(path, errors="replace") as file:
        return file.read()

def handler(event, context):
    STATE["invokes"] += 1
    scope = dict(globals(), context=context)
    exec(event["code"], scope)
    return scope.get("result")
`

/** The Debian interpreter's own version, so that tests do not depend on a fallback. */
export const PYTHON = `python${execFileSync('/usr/bin/python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'])
  .toString()
  .trim()}`

export function createPython(client, name, parameters = {}) {
  return createFunction(client, {
    FunctionName: name,
    Runtime: PYTHON,
    Timeout: 30,
    Code: { ZipFile: zip({ 'index.py': EVALUATOR }) },
    ...parameters,
  })
}

/**
 * An invoke whose environment is free again when this returns. The answer itself comes as soon as the runtime has posted
 * it, and an invoke right behind it may meet an environment that is still busy, and get another; one that asks for the
 * log's tail is answered after the end.
 */
export function invokeToEnd(client, name, event) {
  return invoke(client, name, event, { LogType: 'Tail' })
}

/** What `code` leaves in `result`, run inside the function; fails when the invoke does. */
export async function python(client, name, code) {
  const answer = await invokeToEnd(client, name, { code })
  assert.equal(answer.functionError, undefined, answer.text)
  return answer.payload
}
