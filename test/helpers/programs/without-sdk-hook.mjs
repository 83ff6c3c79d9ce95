const SDK = '@opentelemetry/sdk-node'

export async function resolve(specifier, context, next) {
  if (specifier !== SDK) return next(specifier, context)
  throw Object.assign(new Error(`Cannot find package ${SDK}`), { code: 'ERR_MODULE_NOT_FOUND' })
}
