// Modules for Node's `--import`, with which a test sees or prevents the imports of a program under test.

const printing = `
  import { writeSync } from 'node:fs'
  function print(name) {
    if (/^[@a-z]/.test(name) && !/^(node|file|data):/.test(name)) {
      writeSync(1, JSON.stringify({ event: 'imported', name }) + '\\n')
    }
  }`

/** Prints the line `imported` for each package that the program imports or requires. */
export const printingImports = moduleOf(`${printing}
  import Module, { register } from 'node:module'
  const { require } = Module.prototype
  Module.prototype.require = function (name) {
    print(name)
    return require.call(this, name)
  }
  register(${JSON.stringify(
    moduleOf(`${printing}
  export async function resolve(specifier, context, next) {
    print(specifier)
    return next(specifier, context)
  }`)
  )})`)

/** Makes the program find no package of this name. */
export function without(name: string): string {
  return hook(`
    export async function resolve(specifier, context, next) {
      if (specifier !== ${JSON.stringify(name)}) return next(specifier, context)
      throw Object.assign(new Error('Cannot find package ' + specifier), { code: 'ERR_MODULE_NOT_FOUND' })
    }`)
}

function hook(code: string): string {
  return moduleOf(`import { register } from 'node:module'; register(${JSON.stringify(moduleOf(code))})`)
}

function moduleOf(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`
}
