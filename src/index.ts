/** What a program may import from `platform-auth-server`. */
export { createApp, requireTokens } from './app.js'
export type { Config } from './config/settings.js'
export type { TokenObject, Tokens } from './modes/mode.js'
export type { AppParts } from './services.js'
