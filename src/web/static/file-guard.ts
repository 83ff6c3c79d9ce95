import { isProtectedFile, isProtectedPath } from '../../config/types/protected-files.js'
import type { Services } from '../middleware-services.js'
import { protectWithSession } from '../routes/require-tokens.js'

/**
 * Protects the static files that match `access.files`. The decision depends on the file and not on the URL, so that no
 * spelling of a URL avoids it: other letter case, escapes, `/about` for `about.html`, the URL of a folder, symlinks, or
 * the fallback page. Returns undefined if no file needs a session.
 */
export function fileGuard(services: Services) {
  const patterns = services.config.access.files
  if (!patterns) return undefined

  return {
    /**
     * True if a file needs a session.
     * @param path the path below wwwroot that the URL leads to
     * @param realPath the same with symlinks resolved
     */
    protects: (path: string, realPath: string) =>
      [path, withoutMountFolders(realPath)].some(file => isProtectedFile(file, patterns)),
    /**
     * True if a request for a path without a file gets the response of a protected file.
     * @param path the path below wwwroot that the URL leads to
     */
    protectsPath: (path: string) => isProtectedPath(path, patterns),
    /** Calls `next` if the request has a session. Otherwise responds as the routes that need tokens do. */
    admit: protectWithSession(services)
  }
}

/**
 * Removes the folders such as `..2026_05_01`, to which the symlinks of a mounted Kubernetes ConfigMap lead. Operators do
 * not know these names.
 */
function withoutMountFolders(path: string): string {
  const names = path.split('/')
  return names.filter(name => !name.startsWith('..')).join('/')
}
