/** What a program may import from `platform-auth-server`. */
export type { Config } from './config/settings.js'
