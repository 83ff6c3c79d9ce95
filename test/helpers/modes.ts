import type { Config } from '#src/config/settings.js'

export type ModeName = Config['mode']

/**
 * The two token modes, for tests of rules that hold in both. In single mode the only token stays on the server. In dual
 * mode pages also get a second token with fewer scopes.
 */
export const modes = ['single', 'dual'] as const satisfies readonly ModeName[]
