import { writeSync } from 'node:fs'

export function print(name) {
  const isPackage = /^[@a-z]/.test(name) && !/^(node|file|data):/.test(name)
  if (isPackage) writeSync(1, `${JSON.stringify({ event: 'imported', name })}\n`)
}

export async function resolve(specifier, context, next) {
  print(specifier)
  return next(specifier, context)
}
