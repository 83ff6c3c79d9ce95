import type { ValueType } from './value-type.js'

/** What a row of the settings table contains. */

/** Marks a setting that the operator must set, because no default would be right. */
export const required = Symbol('required')

export interface Setting<Value = unknown> {
  /** The name of the environment variable, if it does not follow from the key (see `variableOf` in `settings.ts`). */
  readonly env?: string
  /**
   * The name of the variable in the tutorials of Autodesk Platform Services. The server uses this variable only if the
   * variable of the setting is not set.
   */
  readonly tutorialEnv?: string
  /** The flag in the syntax of commander. The value of a flag that ends in `-file <file>` is the path of a file. */
  readonly flag?: string
  /** The short form of the flag, such as `-p`. */
  readonly shortFlag?: string
  readonly type: ValueType<Value>
  /** An optional setting may have no default. If no source sets the setting, its value is `undefined`. */
  readonly default?: Value | typeof required
  /** Returns the default if it depends on other settings or on the working directory. */
  readonly defaultFrom?: (known: KnownSettings) => unknown
  /** Describes the default in the reference, if the value alone does not explain it. */
  readonly defaultText?: string
  /**
   * True if the value is a secret. All output hides the value. If its type has a `mask` function, output hides only the
   * password in the value. The value can also be read from the file whose path is in `<env>_FILE`.
   */
  readonly secret?: true
  /**
   * True if an empty value is an error. An empty value of any other setting counts as not set, and its default applies.
   * For example, if an empty access list counted as not set, everyone could sign in. A colour without quotation marks
   * is a comment in YAML and in `.env`, so it would have no effect without this error.
   */
  readonly rejectsEmpty?: true
  /** Unknown variables that match this pattern count as misspelt variables of the setting, however many letters differ. */
  readonly resembledBy?: RegExp
  /** True if a value in `.env` may have several lines. Of any other value, the closing quotation mark is probably missing. */
  readonly severalLines?: true
  /** What the file at the path in this setting contains, if it must not be public. */
  readonly privateFile?: 'secret' | 'code'
  /** True if an empty string is a value. */
  readonly keepsEmpty?: true
  /** Explains the setting in the reference, in `--help` and in settings files. */
  readonly summary: string
}

/** A row with its key and the name of its variable. */
export interface Row extends Setting {
  readonly key: string
  readonly env: string
}

/** True if the setting is a secret, or decides who may sign in or read what, or for how long. */
export function isSecurity({ key, secret }: Row): boolean {
  return secret === true || /^(access|forwardAuth|session)\./.test(key)
}

/** Returns the names of the groups, which are the parts of the keys before the dot, in the order of the table. */
export function groupsOf(keys: readonly string[]): readonly string[] {
  return [...new Set(keys.filter(key => key.includes('.')).map(key => key.slice(0, key.indexOf('.'))))]
}

/** What a default may depend on. */
export interface KnownSettings {
  /** Returns the value of a setting, or undefined if it is invalid or comes after this setting in the table. */
  readonly value: (key: string) => unknown
  /** True if a source sets the setting. */
  readonly isGiven: (key: string) => boolean
  readonly cwd: string
}

/** Returns the name of a declared flag, such as `--port` for `--port <port>`. */
export function flagName(flag: string): string {
  return flag.split(' ', 1).join('')
}

/**
 * True if the value of the flag is the path of a file. Secrets have such flags, because the process list shows the
 * values of all flags.
 */
export function namesFile(flag: string | undefined): boolean {
  return flag?.endsWith('-file <file>') ?? false
}

/** True if a value contains the secret of its setting. The URL of Redis contains a secret only if it has a password. */
export function containsSecret({ secret, type }: Setting, value: unknown): boolean {
  return secret === true && (typeof value !== 'string' || (type.containsSecret?.(value) ?? true))
}
