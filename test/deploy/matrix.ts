// The settings of each guide in each deployment: what the server gets if an operator copies the lines of the guide to where the document
// of the deployment says, and whether a login, a refresh and a logout work with it.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { parse } from 'yaml'
import { createClock } from '../helpers/clock.js'
import { createHostileIdp, type HostileIdp } from '../helpers/hostile-idp/index.js'
import { fencedBlocks } from '../helpers/markdown.js'
import type { ModeName } from '../helpers/modes.js'
import { copiedLines, type Guide, guides, guideText, imitate } from '../helpers/provider-guides.js'
import { readText, readYaml } from '../helpers/repository.js'
import { inScope, type Teardown } from '../helpers/scope.js'
import { openCallback, startLogin, startTestServer } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { type Deployment as Manifest, objectsIn } from './chart.js'
import { settingsFrom } from './settings.js'

type Variables = Readonly<Record<string, string>>

/** Returns the variables of the server if these lines are put where the document of the deployment says. */
export type Deployment = (lines: readonly string[], t: Teardown) => Variables | Promise<Variables>

interface Compose {
  readonly services: Readonly<Record<string, { readonly env_file?: string; readonly environment?: Variables } | null>>
}

export const deployments: Readonly<Record<string, Deployment>> = {
  Compose: lines => ofCompose(lines, 'deploy/compose.yaml'),
  'Compose, Caddy': lines => ofCompose(lines, 'deploy/compose.yaml', 'deploy/compose.caddy.yaml'),
  Kubernetes(lines) {
    const [deployment] = readYaml('deploy/kubernetes/platform-auth-server.yaml') as [Manifest]
    return { ...variablesIn(serverEnvOf(lines)), ...variablesOf(deployment) }
  },
  systemd(lines) {
    const unit = readText('deploy/platform-auth-server@.service').replaceAll('%i', '8080')
    const own = [...unit.matchAll(/^Environment=(.*)$/gm)].map(([, line = '']) => line)
    return {
      ...variablesIn(own.join('\n')),
      ...variablesIn(filledIn('deploy/platform-auth-server-environment', lines))
    }
  },
  npx: lines =>
    variablesIn(
      [...lines, 'SERVER_SESSION_SECRET_FILE=session-secret', 'PLATFORM_CLIENT_SECRET_FILE=client-secret'].join('\n')
    )
}

function ofCompose(lines: readonly string[], ...files: readonly string[]): Variables {
  const [sample = ''] = fencedBlocks(readText('docs/deploy/one-machine.md'))
    .filter(({ language }) => language === 'ini')
    .map(({ text }) => text)
  const serverEnv = variablesIn(replaceFirst(sample, lines))
  const variants = files.map(file => parse(readText(file).replaceAll(/!(reset|override) /g, '')) as Compose)
  const ofServers = variants.map(({ services }) => services['server-1'])
  if (!ofServers.some(service => service?.env_file === 'server.env')) throw new Error('server.env is not read')
  const { PUBLIC_HOST: host, PLATFORM_CALLBACK_URL: callbackUrl = '' } = serverEnv
  if (new URL(callbackUrl).host !== host) throw new Error(`Caddy serves ${host}`)
  return Object.assign({}, serverEnv, ...ofServers.map(service => service?.environment))
}

/** The file that kustomize makes a ConfigMap of. */
export const serverEnvOf = (lines: readonly string[]) => filledIn('deploy/kubernetes/server.env', lines)

/** @param helm its executable */
export function ofHelm(helm: (args: readonly string[]) => string): Deployment {
  return async (lines, t) => {
    const [sample = ''] = fencedBlocks(readText('docs/deploy/kubernetes.md'))
      .filter(({ text }) => text.trimStart().startsWith('image:'))
      .map(({ text }) => text)
    const values = parse(sample) as { readonly env: Variables }
    const {
      PLATFORM_CLIENT_ID: clientId,
      PLATFORM_CALLBACK_URL: callbackUrl,
      PLATFORM_AUTH_MODE: mode,
      ...env
    } = variablesIn(lines.join('\n'))
    const file = join(await tempFolder(t), 'values.json')
    const changed = { ...values, clientId, callbackUrl, ...(mode && { mode }), env: { ...values.env, ...env } }
    writeFileSync(file, JSON.stringify(changed))
    const objects = objectsIn(helm(['-f', file]))
    return variablesOf(objects.find(({ kind }) => kind === 'Deployment') as Manifest)
  }
}

function variablesOf({ spec }: Manifest): Variables {
  return Object.fromEntries(spec.template.spec.containers[0].env.map(({ name, value = '' }) => [name, value]))
}

const variablesIn = (text: string) => parseEnv(text) as Record<string, string>

const filledIn = (file: string, lines: readonly string[]) => replaceFirst(readText(file), lines)

/** Replaces the client id and the callback URL, as each of these files says. */
function replaceFirst(text: string, lines: readonly string[]): string {
  const own = text.split('\n').filter(line => !/^ *PLATFORM_(CLIENT_ID|CALLBACK_URL)=/.test(line))
  // A line further down takes precedence, as the one that an operator has changed.
  return [...own.filter(line => !lines.some(given => line.split('=', 1)[0] === given.split('=', 1)[0])), ...lines].join(
    '\n'
  )
}

/** The lines that a guide tells to copy for this mode, or undefined if it says that the mode does not work. */
export function linesFor(name: string, mode: ModeName): readonly string[] | undefined {
  const text = guideText(name)
  const allow = /E-mail addresses and domains match no user/.test(text) ? /`(roles=\w+)`/.exec(text)?.[1] : undefined
  const lines = [...copiedLines(name), ...(allow ? [`PLATFORM_AUTH_ACCESS_ALLOW=${allow}`] : [])]
  if (mode === 'single') return lines
  if (/Use single mode|Dual mode does not work/.test(text)) return undefined
  const [, paragraph = ''] = /^For dual mode, (.*?)\./ms.exec(text) ?? []
  const spans = [...paragraph.matchAll(/`([^`]+)`/g)].map(([, span = '']) => span)
  // The defaults are enough for APS, whose guide says nothing about dual mode.
  const added = spans.length > 0 ? spans.filter(span => span.includes('=')) : ['PLATFORM_AUTH_MODE=dual']
  return [...lines.filter(line => !spans.includes(line.split('=', 1).join())), ...added]
}

/** Returns `works`, or the first step that does not. */
export function walk(name: string, mode: ModeName, deployment: Deployment, redisUrl: string): Promise<string> {
  return inScope(async t => {
    const lines = linesFor(name, mode)
    if (!lines) return 'single only'
    const guide = guides[name] as Guide
    const clock = createClock()
    const idp = await createHostileIdp(t, { now: clock.now, callbackUrl: 'https://app.example.com/api/auth/callback' })
    imitate(idp, guide)
    const { claims = { email: 'ada@example.com', email_verified: true } } = guide
    idp.settings.profile = { ...idp.settings.profile, ...claims }
    idp.settings.idTokenClaims = given => ({ ...given, ...claims })
    const variables = await deployment(atStandIn(lines, idp), t)
    const secrets = { PLATFORM_CLIENT_SECRET_FILE: idp.clientSecret, REDIS_URL_FILE: redisUrl }
    const { config, warnings } = await settingsFrom(t, variables, secrets)
    // A page of a provider does not say who may sign in, and `npx` has no sample that does.
    const unexpected = warnings.filter(({ key }) => key !== 'access.allow' || variables.PLATFORM_AUTH_ACCESS_ALLOW)
    if (unexpected.length > 0) return `warns about ${unexpected.map(({ key }) => key)}`
    const { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, revocationEndpoint, endSessionEndpoint } = idp
    // Only APS has no discovery document, but addresses in the program.
    const ofAps = { authorizationEndpoint, tokenEndpoint, userinfoEndpoint, revocationEndpoint, endSessionEndpoint }
    const platform = { ...config.platform, ...(config.platform.issuer ? {} : ofAps) }
    const metrics = { ...config.metrics, address: undefined }
    // The settings for Kubernetes delay a shutdown by 5 seconds, which this test does not need.
    const shutdown = { ...config.shutdown, delaySeconds: 0 }
    const here = { ...config, platform, metrics, shutdown, port: 0, host: '127.0.0.1' }
    const { browser } = await startTestServer(t, { idp, clock, config: here })
    const login = await openCallback(browser, await startLogin(browser))
    if (login.statusCode !== 302) return `login ${login.statusCode}`
    const before = idp.tokenRequests.length
    clock.advanceSeconds(3600)
    const refreshed = await browser.fetch('/api/auth/profile')
    const requests = idp.tokenRequests.length - before
    if (refreshed.statusCode !== 200 || requests !== (mode === 'dual' ? 2 : 1))
      return `refresh ${refreshed.statusCode}, ${requests} requests`
    const { location = '' } = (await browser.navigate('/api/auth/logout')).headers
    if (config.logout.idp !== location.startsWith(idp.endSessionEndpoint)) return `logout to ${location}`
    const { statusCode } = await browser.fetch('/api/auth/profile')
    return statusCode === 401 ? 'works' : `after the logout ${statusCode}`
  })
}

/** Replaces what an operator has to replace: the address of the provider and the client id. */
function atStandIn(lines: readonly string[], idp: HostileIdp): string[] {
  const own: Variables = {
    PLATFORM_ISSUER: idp.issuer,
    PLATFORM_CLIENT_ID: idp.clientId,
    PLATFORM_REVOCATION_ENDPOINT: idp.revocationEndpoint
  }
  return lines.map(line => {
    const [name = '', value] = line.split(/=(.*)/s)
    return `${name}=${own[name] ?? value}`
  })
}
