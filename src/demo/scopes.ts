/** What the platform lets an application ask for. */
export const platformScopes = [
  'openid',
  'user-profile:read',
  'user:read',
  'user:write',
  'viewables:read',
  'data:read',
  'data:write',
  'data:create',
  'data:search',
  'bucket:create',
  'bucket:read',
  'bucket:update',
  'bucket:delete',
  'code:all',
  'account:read',
  'account:write',
  'application:service_account:read',
  'application:service_account:write'
] as const

const known: ReadonlySet<string> = new Set(platformScopes)

/** `data:read:<URN>` narrows reading to one resource; a list of them is what makes the platform's tokens long. */
const oneResource = /^data:read:[!#-[\]-~]+$/

export function isKnownScope(scope: string): boolean {
  return known.has(scope) || oneResource.test(scope)
}

export function splitScope(scope: unknown): string[] {
  return typeof scope === 'string' ? scope.split(' ').filter(Boolean) : []
}
