/** What a program may import from `platform-auth-server`. */
export { createApp, requireTokens } from './app.js'
export { ConfigError, type Problem } from './config/errors.js'
export { type LoadedConfig, loadConfig } from './config/load.js'
export type { Sources } from './config/resolve.js'
export type { Config, Overrides } from './config/settings.js'
export type { TokenObject, Tokens } from './modes/mode.js'
export { type RunningServer, type StartOptions, startServer } from './server.js'
export type { AppParts } from './services.js'
