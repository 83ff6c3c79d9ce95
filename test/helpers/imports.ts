// Modules for Node's `--import`, with which a test sees or prevents the imports of a program under test.

/** Prints the line `imported` for each package that the program imports. */
export const printingImports = hook(`
  import { writeSync } from 'node:fs'
  export async function resolve(specifier, context, next) {
    if (/^[@a-z]/.test(specifier) && !/^(node|file|data):/.test(specifier)) {
      writeSync(1, JSON.stringify({ event: 'imported', name: specifier }) + '\\n')
    }
    return next(specifier, context)
  }`)

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
