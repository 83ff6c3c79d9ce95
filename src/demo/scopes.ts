/** The scopes that an application can request from the platform. */
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

const knownScopes: ReadonlySet<string> = new Set(platformScopes)

/**
 * A scope `data:read:<URN>` permits reading one resource. With many of these scopes, a token of the platform becomes long.
 */
const resourceScope = /^data:read:[!#-[\]-~]+$/

export function isKnownScope(scope: string): boolean {
  return knownScopes.has(scope) || resourceScope.test(scope)
}

export function splitScope(scope: unknown): string[] {
  return typeof scope === 'string' ? scope.split(' ').filter(Boolean) : []
}
