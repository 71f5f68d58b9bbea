// What docs/api-coverage.md says: operation -> is it supported.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './kiln.mjs'

export function supportedOperations() {
  const document = readFileSync(join(REPOSITORY, 'docs/api-coverage.md'), 'utf8')
  const [, yes, no] = document.match(/\n## AWS Lambda(.*?)\nNot yet:\n(.*?)(?:\n## |$)/s)
  const names = (text) => [...text.matchAll(/^\| ([A-Z]\w+) \| `/gm)].map(([, name]) => name)
  return new Map([...names(yes).map((name) => [name, true]), ...names(no).map((name) => [name, false])])
}
