// The package's front door prints a warning on every Node release that is not a recent LTS one, 20 and the current one
// included; the class behind it works there. These two modules are that class and its errors, reached directly; the
// version is pinned exactly, so the paths cannot move unnoticed. It can go when Node 20 goes.
declare module 'oidc-provider/lib/provider.js' {
  export { default as Provider } from 'oidc-provider'
}

declare module 'oidc-provider/lib/helpers/errors.js' {
  import type { errors } from 'oidc-provider'
  export const InvalidScope: typeof errors.InvalidScope
  export const SessionNotFound: typeof errors.SessionNotFound
}
