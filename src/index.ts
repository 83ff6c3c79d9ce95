/** The public interface of `platform-auth-server`. */

export { type LoadConfigOptions, type LoadedConfig, loadConfig } from './config/load.js'
export type { Config, Settings } from './config/settings.js'
export { ConfigError, type ConfigProblem } from './config/types/problem.js'
export type { DemoOptions } from './demo/open.js'
export type { Tokens } from './login/mode.js'
export type { TokenObject } from './login/token-requests.js'
export type { AppOptions } from './server/create-services.js'
export { createApp, type RunningServer, type StartOptions, startServer } from './server/start-server.js'
export { requireTokens } from './web/routes/custom-routes.js'
export type { Extension, ExtensionTools } from './web/routes/extension.js'
export type { TokensState } from './web/routes/require-tokens.js'
