/** The programs of the comparison, in the order in which they run. */
import { programs as apache } from './mod-auth-openidc.js'
import { programs as oauth2Proxy } from './oauth2-proxy.js'
import { programs as ours } from './platform-auth-server.js'
import { programs as tutorial } from './tutorial.js'
import { programs as wonderwall } from './wonderwall.js'

/** @type {import('./common.js').Compared[]} */
export const programs = [...ours, ...oauth2Proxy, ...wonderwall, ...apache, ...tutorial]
