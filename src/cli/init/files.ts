import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { fileName } from '../../config/file.js'
import { newSecret } from '../../config/new-secret.js'
import { errorCode, readTextFile } from '../../config/read-file.js'
import { sampleFile } from '../../config/sample.js'
import { type SettingKey, settingOf, type Values } from '../../config/settings.js'
import { UsageError } from '../errors.js'

export const settingsFile = `${fileName}.config.yaml`
export const secretsFile = '.env'

export function settingsText(values: Values): string {
  const open = Object.entries(values).filter(([key]) => !settingOf(key as SettingKey).secret)
  return `# yaml-language-server: $schema=${schema}\n${sampleFile(Object.fromEntries(open) as Values)}`
}

/** The schema of the installed package, for editors that complete and check the file. */
const schema = './node_modules/platform-auth-server/config/schema.json'

export function secretsText({
  'session.secret': sessionSecret,
  'platform.clientSecret': clientSecret,
  redisUrl
}: Values): string {
  return [
    '# Secrets of platform-auth-server. Keep this file to yourself and out of version control.',
    '',
    '# Seals the sessions. A new one logs everybody out, unless the old one moves to SERVER_SESSION_PREVIOUS_SECRETS.',
    line('SERVER_SESSION_SECRET', sessionSecret ?? newSecret()),
    '',
    "# From the application's page at the provider.",
    line('PLATFORM_CLIENT_SECRET', clientSecret ?? ''),
    // Not a secret by its nature, but it may hold a password.
    ...(redisUrl === undefined ? [] : ['', '# Where replicas meet.', line('REDIS_URL', redisUrl)]),
    ''
  ].join('\n')
}

/** Without these variables the server does not start. */
const needed = ['SERVER_SESSION_SECRET', 'PLATFORM_CLIENT_SECRET']

/** What is to be said of a `.env` that is in the way; nothing if there is none. */
export async function remarkOnSecrets(path: string): Promise<string | undefined> {
  try {
    const known = parseEnv(await readTextFile(path))
    const lacking = needed.filter(name => !known[name]).join(' and ')
    return `${leftAsItIs(secretsFile)}${lacking && `, without ${lacking}`}`
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    // Somebody's Python environment, which the server passes over too.
    if (errorCode(error) !== 'EISDIR') throw error
    return `${secretsFile} is a folder, so no secrets were written; give ${needed.join(' and ')} in the environment`
  }
}

export function leftAsItIs(file: string): string {
  return `${file} is there already and was left as it is`
}

/** False if the file is there already, even if it came up only this moment. */
export async function writeNew(path: string, text: string, mode = 0o644): Promise<boolean> {
  try {
    await writeFile(path, text, { flag: 'wx', mode })
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  }
}

/**
 * Adds `.env` to the `.gitignore` of the folder. Returns true when it did, and false when there is no such file or the
 * file has the line already.
 */
export async function ignoreSecrets(cwd: string): Promise<boolean> {
  const path = join(cwd, '.gitignore')
  const text = await readTextFile(path).catch((error: unknown) => {
    if (['ENOENT', 'EISDIR'].includes(errorCode(error) ?? '')) return undefined
    throw error
  })
  if (text === undefined || /^\/?\.env\*?\s*$/m.test(text)) return false
  await appendFile(path, `${text === '' || text.endsWith('\n') ? '' : '\n'}${secretsFile}\n`)
  return true
}

/** The format has quotation marks of three kinds but nothing to escape them with. */
function line(name: string, value: string): string {
  const spellings = [value, ...["'", '`', '"'].map(mark => `${mark}${value}${mark}`)]
  const found = spellings.map(spelling => `${name}=${spelling}`).find(text => parseEnv(text)[name] === value)
  if (found === undefined)
    throw new UsageError(`${secretsFile} cannot hold such a value; name a file by ${name}_FILE instead.`)
  return found
}
