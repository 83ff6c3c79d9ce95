import { spawnSync } from 'node:child_process'
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { errorCode } from '../../base/error-code.js'
import { readTextFile } from '../../base/text-file.js'
import { type SettingKey, settingKeys, settingOf, type Values } from '../../config/settings.js'
import { appName } from '../../config/sources/search-places.js'
import { newSecret } from '../../config/types/secrets.js'
import { settingsYaml } from '../../config/yaml-text.js'
import { UsageError } from '../terminal/expected-errors.js'

export const yamlFile = `${appName}.config.yaml`
export const secretsFile = '.env'
export const ignoreFile = '.gitignore'

/** Returns a settings file in YAML with the given settings, except secrets. Comments explain the settings. */
export function settingsText(values: Values): string {
  const header = [
    // The schema of the installed package, for editors that complete and check the file.
    '# yaml-language-server: $schema=./node_modules/platform-auth-server/config/schema.json',
    '# Settings of platform-auth-server. The secrets are in .env, and all other settings have their defaults.',
    '# `npx platform-auth-server --help all` lists all settings. In an installed package,',
    '# node_modules/platform-auth-server/docs/reference/configuration.md explains them, and config/full.yaml there is a sample.'
  ]
  // The access list is shown even if it is not set, because every account may sign in without it.
  const isShown = (key: SettingKey) => values[key] !== undefined || key === 'access.allow'
  const keys = settingKeys.filter(key => isShown(key) && !settingOf(key).secret)
  return settingsYaml(header, keys, values, key => [`# ${settingOf(key).summary}`])
}

export function secretsText(values: Values): string {
  const { 'redis.url': redisUrl } = values
  return [
    '# Secrets of platform-auth-server. Do not share this file, and do not put it under version control.',
    '',
    '# Encrypts the sessions. A new secret logs everyone out, unless SERVER_SESSION_PREVIOUS_SECRETS contains the old secret.',
    variable('SERVER_SESSION_SECRET', values['session.secret'] ?? newSecret()),
    '',
    '# The provider shows the client secret on the page of the application.',
    variable('PLATFORM_CLIENT_SECRET', values['platform.clientSecret'] ?? ''),
    // The URL goes into this file, because it may contain a password.
    ...(redisUrl === undefined
      ? []
      : ['', '# The Redis that all replicas share.', variable('REDIS_URL', redisUrl.text)]),
    ''
  ].join('\n')
}

/** Writes a new file. Returns false if the file exists already, even if another process has just created it. */
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
 * Adds `.env` to the `.gitignore` in the folder, in a git repository that does not ignore it yet. Returns `none` outside of a
 * repository, without git, and if the file cannot be changed.
 */
export async function ignoreSecrets(cwd: string): Promise<'ignored' | 'added' | 'none'> {
  const { status } = spawnSync('git', ['check-ignore', '--quiet', secretsFile], { cwd, stdio: 'ignore' })
  if (status === 0) return 'ignored'
  if (status !== 1) return 'none'
  const path = join(cwd, ignoreFile)
  try {
    // A .gitignore that cannot be read cannot be changed either, unless there is none.
    const text = await readTextFile(path).catch(() => '')
    await appendFile(path, `${text === '' || text.endsWith('\n') ? '' : '\n'}${secretsFile}\n`)
    return 'added'
  } catch {
    return 'none'
  }
}

/** Returns a line of a `.env` file. Tries each kind of quotation mark, because the format has no escape character. */
function variable(name: string, value: string): string {
  const spellings = [value, ...["'", '`', '"'].map(mark => `${mark}${value}${mark}`)]
  const found = spellings.map(spelling => `${name}=${spelling}`).find(text => parseEnv(text)[name] === value)
  if (found !== undefined) return found
  const next = `Set ${name}_FILE to the path of a file with the value instead.`
  throw new UsageError(`${secretsFile} cannot contain this value of ${name}. ${next}`)
}
