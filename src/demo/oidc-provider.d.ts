// The main module of oidc-provider prints a warning on every Node release that is not a recent LTS release, although
// the provider works there. Node 20 is one of them. The demo therefore imports the provider class and its helpers from
// their own modules. The version is pinned exactly, so these paths cannot change unnoticed. Remove this file when Node
// 20 is no longer supported.
declare module 'oidc-provider/lib/provider.js' {
  export { default as Provider } from 'oidc-provider'
}

declare module 'oidc-provider/lib/helpers/interaction_policy/index.js' {
  import type { interactionPolicy } from 'oidc-provider'
  export const base: typeof interactionPolicy.base
  export const Prompt: typeof interactionPolicy.Prompt
}

declare module 'oidc-provider/lib/helpers/errors.js' {
  import type { errors } from 'oidc-provider'
  export const InvalidScope: typeof errors.InvalidScope
  export const SessionNotFound: typeof errors.SessionNotFound
}
