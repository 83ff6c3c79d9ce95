import type { ExecutionContext } from 'ava'

/** Replaces a function of a module for this test. `create` gets the original function, which the new one can call. */
export function replace<Module, Name extends keyof Module>(
  t: Pick<ExecutionContext, 'teardown'>,
  module: Module,
  name: Name,
  create: (original: Module[Name]) => (...parameters: never[]) => unknown
): void {
  const original = module[name]
  module[name] = create(original) as Module[Name]
  t.teardown(() => {
    module[name] = original
  })
}
