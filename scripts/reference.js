// Generates the content that depends on the settings table: the table in docs/reference/configuration.md, the schema
// for editors (config/schema.json) and the sample of all settings (config/full.yaml). Reads the table from dist/, so run this
// after a build. With --check, changes nothing, lists the files that are outdated, and exits with 1 if there are any.
import { readFileSync, writeFileSync } from 'node:fs'
import {
  defaultText,
  flagName,
  groups,
  membersOf,
  required,
  settingKeys,
  settingOf,
  writtenValue
} from '../dist/config/settings.js'
import { settingsYaml } from '../dist/config/yaml-text.js'
import { EXPLANATIONS } from '../dist/pages/index.js'
import { english } from '../dist/pages/texts.js'

const root = new URL('../', import.meta.url)
const read = path => readFileSync(new URL(path, root), 'utf8')

const generated = {
  'docs/reference/configuration.md': withTable(
    'docs/reference/configuration.md',
    'settings',
    referenceTable(settingKeys)
  ),
  'docs/pages/error-pages.md': withTable('docs/pages/error-pages.md', 'ways', `${waysTable()}\n\n${moduleTable()}`),
  'config/schema.json': `${JSON.stringify(jsonSchema(), undefined, 2)}\n`,
  'config/full.yaml': fullSample(),
  // Helm can read only the files of the chart.
  'deploy/helm/files/alerts.yaml': read('deploy/monitoring/alerts.yaml')
}

const outdated = Object.entries(generated).filter(([path, content]) => read(path) !== content)
if (!process.argv.includes('--check'))
  for (const [path, content] of outdated) writeFileSync(new URL(path, root), content)
else if (outdated.length > 0) {
  process.stderr.write(`outdated: ${outdated.map(([path]) => path).join(', ')}; run: npm run reference\n`)
  process.exitCode = 1
}

/** Puts a table between the two markers of a Markdown file. */
function withTable(path, name, table) {
  const [begin, end] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`]
  const [before, rest] = read(path).split(begin)
  const after = rest?.split(end)[1]
  if (after === undefined) throw new Error(`the markers ${begin} and ${end} are missing`)
  return `${before}${begin}\n${table}\n${end}${after}`
}

/** Returns a Markdown table with one row for each main button of the error pages, and what was seen before it is offered. */
function waysTable() {
  const { actions } = english
  const seenBefore = new Map()
  for (const [seen, , topic, way] of EXPLANATIONS) {
    const label =
      way === 'signIn' && topic !== 'notSignedIn'
        ? actions.signInAgain
        : actions[way === 'tryAgainInTab' ? 'tryAgain' : way]
    seenBefore.set(label, [...(seenBefore.get(label) ?? []), seen])
  }
  // These two have a page of their own, with the likely reasons (loginLoopPage).
  seenBefore.get(actions.signInAgain).unshift('`login_cookie_missing`', '`session_cookie_missing`')
  const rows = [...seenBefore].map(([label, seen]) => `| ${label} | ${seen.join(', ')} |`)
  return ['| main button | seen |', '|---|---|', ...rows].join('\n')
}

/** Returns a Markdown table with one row for each error of the module. Throws if the module has another error. */
function moduleTable() {
  const ways = {
    SignInLoopError: 'a button that calls `signIn`',
    SignInPreventedError: 'a sign-in in a new tab, then the same call',
    DOMException: 'the same call',
    Error: 'as its message says'
  }
  const module = read('src/pages/client/client.js')
  const thrown = [...module.matchAll(/(?:\bthrow|\?\?) new (\w+)/g)].map(([, name]) => name)
  const missing = [...new Set(thrown)].filter(name => !(name in ways))
  if (missing.length > 0) throw new Error(`these errors of the module have no way on: ${missing.join(', ')}`)
  const rows = Object.entries(ways).map(([name, way]) => `| \`${name}\` | ${way} |`)
  return ['| error of the module | way on |', '|---|---|', ...rows].join('\n')
}

/**
 * Returns a Markdown table with one row for each setting. Each cell has several lines, because a table with a column for
 * each of them is wider than the page.
 */
function referenceTable(keys) {
  const rows = keys.map(key => {
    const { env, flag, shortFlag, type, secret, summary } = settingOf(key)
    const flags = [shortFlag, flag && flagName(flag)].filter(name => name !== undefined)
    const names = [key, env, ...(secret ? [`${env}_FILE`] : []), ...flags]
    const ofDefault = defaultText(key) === 'none' ? [] : [`*Default:* ${defaultText(key)}`]
    // The page explains durations and sizes once.
    const allowed = type.allowed.replace(/^(a (?:duration|size)) such as .+?, from/, '$1 from')
    const meaning = [summary, `*Allowed:* ${allowed}`, ...ofDefault]
    const cells = [names.map(name => `\`${name}\``), meaning.map(line => line.replaceAll('|', '\\|'))]
    return cells.map(lines => lines.join('<br>'))
  })
  return [['setting', 'meaning'], ['---', '---'], ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')
}

/** Returns the schema of a settings file. The server also checks rules between settings, which a schema cannot express. */
function jsonSchema() {
  const schemaOfGroup = group => ({
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(membersOf(group).map(key => [key.slice(group.length + 1), schemaOf(key)]))
  })
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Settings of platform-auth-server',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string' },
      ...Object.fromEntries(settingKeys.filter(key => !key.includes('.')).map(key => [key, schemaOf(key)])),
      ...Object.fromEntries(groups.map(group => [group, schemaOfGroup(group)]))
    }
  }
}

function schemaOf(key) {
  const { type, default: value, env, secret, summary } = settingOf(key)
  const advice = secret
    ? ` To keep this secret out of files that others can read, set ${env} or ${env}_FILE instead.`
    : ` The environment variable ${env} also sets this.`
  const known = value === undefined || value === required || secret ? {} : { default: writtenValue(key, value) }
  return { description: `${summary}${advice}`, ...type.json, ...known }
}

/** Returns a settings file that explains every setting and sets those with a default, in dual mode. */
function fullSample() {
  const header = [
    '# yaml-language-server: $schema=./schema.json',
    '# Settings of platform-auth-server. Each comment lists the allowed values, the default, the variable and the flag.',
    '# Flags override variables, variables override this file, and this file overrides the defaults.'
  ]
  const defaults = settingKeys.map(key => [key, settingOf(key).default])
  const shown = defaults.filter(
    ([key, value]) => value !== required && !settingOf(key).secret && key !== 'platform.scopes'
  )
  const values = {
    ...Object.fromEntries(shown),
    mode: 'dual',
    'platform.clientId': 'replace-with-your-client-id',
    'platform.callbackUrl': 'https://app.example.com/api/auth/callback'
  }
  return settingsYaml(header, settingKeys, values, explained)
}

function explained(key) {
  const { env, flag, type, secret, summary, default: value } = settingOf(key)
  const names = [env, ...(flag ? [flagName(flag)] : [])].join(', ')
  const facts = secret
    ? `Keep it out of this file: ${names} or ${env}_FILE.`
    : `Allowed: ${type.allowed}. ${value === required ? 'Required' : `Default: ${defaultText(key)}`}. ${names}`
  return [`# ${summary}`, `# ${facts}`]
}
