// Finds the function that _HANDLER names: "[folder/]module.function", with CommonJS and ES modules alike.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  CallbackHandlerDeprecated,
  HandlerNotFound,
  ImportModuleError,
  MalformedHandlerName,
  UserCodeSyntaxError,
} from './errors.mjs'

const require = createRequire(import.meta.url)
const NODE_MAJOR = Number(process.versions.node.split('.')[0])
const FIRST_WITH_TYPESCRIPT = 24
const FIRST_WITHOUT_CALLBACKS = 24

/** True when the nearest package.json above `folder` says that .js files are ES modules. */
function isModuleScope(folder) {
  for (; !folder.endsWith('/node_modules'); folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (existsSync(file)) {
      try {
        return JSON.parse(readFileSync(file)).type === 'module'
      } catch (error) {
        console.warn(`${file} cannot be read, it will be ignored for ES module detection purposes.`, error)
        return false
      }
    }
    if (folder === '/') break
  }
  return false
}

function candidates(path) {
  const scope = isModuleScope(dirname(path)) ? 'import' : 'require'
  const list = [
    ['', 'require'],
    ['.js', scope],
    ['.mjs', 'import'],
    ['.cjs', 'require'],
  ]
  if (NODE_MAJOR >= FIRST_WITH_TYPESCRIPT) list.push(['.ts', scope], ['.mts', 'import'], ['.cts', 'require'])
  return list.map(([extension, how]) => [path + extension, how])
}

async function loadModule(root, folder, name) {
  for (const [file, how] of candidates(resolve(root, folder, name))) {
    if (existsSync(file)) return how === 'require' ? require(file) : import(pathToFileURL(file))
  }
  // A module of a layer or of node_modules, found as the function's own code would find it.
  return require(require.resolve(name, { paths: [root, folder] }))
}

function split(handler) {
  if (handler.includes('..')) {
    throw new MalformedHandlerName(
      `'${handler}' is not a valid handler name. Use absolute paths when specifying root directories in handler names.`,
    )
  }
  const last = basename(handler)
  const parts = last.match(/^([^.]*)\.(.*)$/)
  if (!parts) throw new MalformedHandlerName('Bad handler')
  return { folder: handler.slice(0, handler.indexOf(last)), name: parts[1], path: parts[2].split('.') }
}

function refuseCallback(handler) {
  const [, major] = process.env.AWS_EXECUTION_ENV?.match(/^AWS_Lambda_nodejs(\d+)\.x$/) ?? []
  if (Number(major) >= FIRST_WITHOUT_CALLBACKS && handler.length >= 3) {
    throw new CallbackHandlerDeprecated(
      'ERROR: AWS Lambda has removed support for callback-based function handlers starting with Node.js 24. You need to modify this function to use a supported handler signature to use Node.js 24 or later. For more information see https://docs.aws.amazon.com/lambda/latest/dg/nodejs-handler.html.',
    )
  }
}

/** The handler. Throws the runtime's own errors for what it names, and whatever the module itself throws. */
export async function loadHandler(root, handler) {
  const { folder, name, path } = split(handler)
  let module
  try {
    module = await loadModule(root, folder, name)
  } catch (error) {
    if (error instanceof SyntaxError) throw new UserCodeSyntaxError(error)
    if (error?.code === 'MODULE_NOT_FOUND') throw new ImportModuleError(error)
    throw error
  }
  const found = path.reduce((value, key) => value && value[key], module)
  if (!found) throw new HandlerNotFound(`${handler} is undefined or not exported`)
  if (typeof found !== 'function') throw new HandlerNotFound(`${handler} is not a function`)
  refuseCallback(found)
  return found
}
