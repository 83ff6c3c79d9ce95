// The programs of the platform and the frameworks. main.ts lists the others.
import { apsSdk } from './aps-sdk.js'
import { forgeServerUtils } from './forge-server-utils.js'
import { next } from './next.js'
import type { Program } from './program.js'
import { requestLines } from './request-lines.js'
import { svfUtils } from './svf-utils.js'
import { turbo } from './turbo.js'

export const morePrograms: readonly Program[] = [requestLines, apsSdk, forgeServerUtils, svfUtils, turbo, next]
