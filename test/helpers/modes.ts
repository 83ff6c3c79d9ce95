import type { Config } from '#src/config/settings.js'

export type ModeName = Config['mode']

/** Both modes, for tests of a rule that holds in each. */
export const modes = ['single', 'dual'] as const satisfies readonly ModeName[]
