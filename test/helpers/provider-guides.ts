// The guides of docs/reference/providers, and for each a stand-in that answers as the documents of the provider say.
import type { HostileIdp, Quirks } from './hostile-idp/index.js'
import { quirksOf } from './hostile-idp/index.js'
import { fencedBlocks } from './markdown.js'
import { readText } from './repository.js'

export interface Guide {
  readonly quirks: Quirks
  /** Endpoints that the discovery document of the provider does not have. */
  readonly lacks?: readonly ('end_session_endpoint' | 'revocation_endpoint')[]
  /** What does not work in dual mode, as the guide says, and the status of the response. */
  readonly dual?: readonly [what: 'login' | 'refresh', status: number]
  /** Claims of a user in an ID token, in place of a verified e-mail address. */
  readonly claims?: Readonly<Record<string, unknown>>
}

export const guides: Readonly<Record<string, Guide>> = {
  aps: { quirks: {} },
  auth0: { quirks: quirksOf.auth0 },
  authentik: { quirks: quirksOf.authentik },
  cognito: { quirks: quirksOf.cognito, dual: ['login', 502] },
  dex: { quirks: quirksOf.dex, lacks: ['end_session_endpoint', 'revocation_endpoint'] },
  'django-oauth-toolkit': { quirks: quirksOf.django, dual: ['refresh', 401] },
  entra: { quirks: quirksOf.entra, lacks: ['revocation_endpoint'], claims: { roles: ['Editor'] } },
  gitlab: { quirks: quirksOf.gitlab, lacks: ['end_session_endpoint'], dual: ['refresh', 502] },
  google: { quirks: quirksOf.google, lacks: ['end_session_endpoint'] },
  hydra: { quirks: quirksOf.hydra, dual: ['login', 502] },
  keycloak: { quirks: quirksOf.keycloak },
  okta: { quirks: quirksOf.okta },
  zitadel: { quirks: quirksOf.zitadel }
}

/** The text of a guide. */
export const guideText = (name: string) => readText(`docs/reference/providers/${name}.md`)

/** The settings that a guide tells to copy, one a line. */
export function copiedLines(name: string): string[] {
  return fencedBlocks(guideText(name))[0]?.text.trim().split('\n') ?? []
}

/** Makes the provider behave like that of the guide. */
export function imitate(idp: HostileIdp, { quirks, lacks = [] }: Guide): void {
  idp.settings.quirks = quirks
  idp.discovery = document => ({ ...document, ...Object.fromEntries(lacks.map(name => [name, undefined])) })
}
