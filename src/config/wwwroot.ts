import { fileURLToPath } from 'node:url'

/** The packaged starter page, which is served while the operator has no `wwwroot` of their own. */
export const STARTER_PAGE = fileURLToPath(new URL('../../wwwroot', import.meta.url))
