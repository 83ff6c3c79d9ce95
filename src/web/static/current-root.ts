import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/settings.js'
import { AUTH_PATH, isAuthPath } from '../../config/types/urls.js'
import { wwwrootProblem } from '../../config/wwwroot.js'
import type { Services } from '../middleware-services.js'
import { fileFinder } from './find-file.js'

/** The folder of static files to which the setting `wwwroot` leads at present. */
export type Root = ReturnType<typeof createRoot>

const CHECK_INTERVAL_MS = 1000

/**
 * Creates a function that returns the current root. The setting `wwwroot` may be a symlink, which the operator replaces
 * to publish a new release. The function notices this within a second. A response uses one root from its beginning to
 * its end, so that it comes from one release. A new root must pass the checks of the start. Otherwise the server
 * continues to serve the previous root.
 */
export function watchRoot({ config, now, log }: Pick<Services, 'config' | 'now' | 'log'>, wwwroot: string) {
  let root = createRoot(realpathSync.native(wwwroot), config)
  let checkedAt = now()
  let checking: Promise<Root> | undefined
  let rejected: string | undefined

  return function currentRoot(): Root | Promise<Root> {
    if (checking === undefined && Math.abs(now() - checkedAt) >= CHECK_INTERVAL_MS) {
      checkedAt = now()
      const path = realPathOf(wwwroot)
      if (path !== root.path) checking = check(path)
    }
    return checking ?? root
  }

  async function check(path: string): Promise<Root> {
    const problem = await wwwrootProblem(path, config).catch(String)
    if (problem === undefined) {
      root = createRoot(path, config)
      rejected = undefined
      log.info({ event: 'wwwroot_replaced', folder: path }, 'serving the files of a new folder')
    } else if (rejected !== `${path} ${problem}`) {
      rejected = `${path} ${problem}`
      log.warn({ event: 'wwwroot_rejected', folder: path }, `still serving the files of the old folder: ${problem}`)
    }
    checking = undefined
    return root
  }
}

/** Returns the path itself if it leads nowhere. The following checks report this. */
function realPathOf(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}

/** @param path the real path of a folder */
function createRoot(path: string, { apiProxy }: Config) {
  // Files take precedence over routes (docs/reference/contract.md, section 4, rule 5). For a request under `/api/auth`, the
  // server looks for a file only if the root contains the folder `api/auth`.
  const hasAuthFiles = existsSync(join(path, AUTH_PATH))
  // Files also take precedence over proxy rules, but looking for a file causes 40 % of the cost of a proxied request.
  // Therefore the first folder in the path of a rule is searched only if the root contains it. The file of a URL such
  // as `/models` may also be `models.html`.
  const firstNames = apiProxy.rules.map(rule => rule.path.segments[0] ?? '').filter(name => name !== '*')
  const hasFilesOf = (name: string) => existsSync(join(path, name)) || existsSync(join(path, `${name}.html`))
  const proxied = new Set(firstNames.filter(name => !hasFilesOf(name)))

  return {
    path,
    find: fileFinder(path),
    /** False if the root certainly contains no file for the path of a URL. */
    mayContain(urlPath: string): boolean {
      if (isAuthPath(urlPath) && !hasAuthFiles) return false
      return proxied.size === 0 || !proxied.has(urlPath.split('/', 2)[1] ?? '')
    }
  }
}
