import { createPrivateKey, X509Certificate } from 'node:crypto'
import { access, constants, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../base/error-code.js'
import { readTextFile, statIfPossible, whyUnreadable } from '../../base/text-file.js'
import { string, type ValueType } from './value-type.js'

// The types of settings whose values are paths of files or folders.

function pathType(allowed: string, whyUnusable: (path: string) => Promise<string | undefined>): ValueType<string> {
  return { ...string(allowed, /\S/), whyUnusable }
}

export const folder = pathType('a folder', whyNoFolder)
export const scriptModule = pathType('a JavaScript module', whyNoModule)

// The modules that read the files of the folder are imported only when the setting is checked, so other commands do not load
// them.
export const pagesFolder = pathType('a folder', async path => {
  const why = await whyNoFolder(path)
  if (why !== undefined) return why
  const { readPagesFolder } = await import('../../pages/index.js')
  readPagesFolder(path)
  return undefined
})
export const logo = pathType('an image file (SVG, PNG, JPEG, WebP or GIF) of up to 32768 bytes', async path => {
  await access(path)
  const { readLogo } = await import('../../pages/index.js')
  readLogo(path)
  return undefined
})

// The Redis client reads the PEM files again for each connection, so a damaged file should be found at the start.
export const certificates = pathType('a PEM file with one or more certificates', whyNoCertificates)
export const keyFile = pathType('a PEM file with a private key without a passphrase', whyNoKey)

const noSuchFolder = 'there is no such folder'
const notAFolder = 'it is a file'

/** Returns the name of a folder in the working directory, or undefined if there is no folder of this name. */
export async function existingFolder(cwd: string, name: string): Promise<string | undefined> {
  const why = await whyNoFolder(join(cwd, name))
  return why === noSuchFolder || why === notAFolder ? undefined : name
}

export async function whyNoFolder(path: string): Promise<string | undefined> {
  try {
    // stat(path) succeeds even if this user may not enter the folder, so stat(path/.) is used.
    return (await stat(`${path}/.`)).isDirectory() ? undefined : notAFolder
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')) return whyUnreadable(error)
    return (await statIfPossible(path)) === undefined ? noSuchFolder : notAFolder
  }
}

async function whyNoModule(path: string): Promise<string | undefined> {
  await access(path, constants.R_OK)
  return (await stat(path)).isFile() ? undefined : 'it is not a file'
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

async function whyNoCertificates(path: string): Promise<string | undefined> {
  const found = (await readTextFile(path)).match(CERTIFICATE)
  if (!found) return 'it contains no certificate in PEM format'
  return found.every(pem => isParsed(() => new X509Certificate(pem))) ? undefined : 'it contains a damaged certificate'
}

async function whyNoKey(path: string): Promise<string | undefined> {
  const text = await readTextFile(path)
  if (!text.includes('PRIVATE KEY-----')) return 'it contains no private key in PEM format'
  if (text.includes('ENCRYPTED')) return 'its key has a passphrase'
  return isParsed(() => createPrivateKey(text)) ? undefined : 'its key is damaged'
}

function isParsed(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch {
    return false
  }
}
