/**
 * Implements the setting `hashedAssets`. It lists folders whose files never change, because a build tool puts a hash of
 * the content into each file name.
 */

const A_YEAR = 'public, max-age=31536000, immutable'
const REVALIDATE = 'max-age=0'

/**
 * Creates the function that returns the `Cache-Control` header of a file. Browsers cache the files of some folders for a
 * year (RFC 8246). They ask for all other files again.
 * @param folders paths below wwwroot, for instance `assets`
 */
export function cacheControl(folders: readonly string[]) {
  const prefixes = folders.map(folder => `${folder}/`)

  /** @param file the path of the file below wwwroot, with `/` as separator. An address may spell this path differently. */
  return function cacheControl(file: string): string {
    return prefixes.some(prefix => file.startsWith(prefix)) && isNamedFile(file) ? A_YEAR : REVALIDATE
  }
}

// HTML pages are excluded, because they keep their names when their content changes. Files without an extension are
// excluded too, because build tools add no hash to names such as `LICENSE`.
function isNamedFile(file: string): boolean {
  return /\.[a-z][a-z0-9]*$/i.test(file) && !/\.x?html?$/i.test(file)
}
