import { groups, required, type SettingKey, settingKeys, settingOf } from './settings.js'
import type { JsonSchema } from './types.js'

/**
 * Returns the JSON Schema of a settings file, for editors. The server also checks rules that the schema cannot express,
 * such as rules between settings.
 */
export function jsonSchema(): JsonSchema {
  const topKeys = settingKeys.filter(key => !key.includes('.'))
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Settings of platform-auth-server',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string' },
      ...Object.fromEntries(topKeys.map(key => [key, schemaOf(key)])),
      ...Object.fromEntries(groups.map(group => [group, schemaOfGroup(group)]))
    }
  }
}

function schemaOfGroup(group: string): JsonSchema {
  const members = settingKeys.filter(key => key.startsWith(`${group}.`))
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(members.map(key => [key.slice(group.length + 1), schemaOf(key)]))
  }
}

function schemaOf(key: SettingKey): JsonSchema {
  const { type, default: value, env, secret, summary } = settingOf(key)
  const advice = secret
    ? ` To keep this secret out of files that others can read, set ${env} or ${env}_FILE instead.`
    : ` The environment variable ${env} also sets this.`
  const known = value === undefined || value === required || secret ? {} : { default: value }
  return { description: `${summary}${advice}`, ...type.json, ...known }
}
