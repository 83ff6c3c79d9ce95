// On Node releases that are not a recent LTS release, such as Node 20, the main module of oidc-provider prints a
// warning, although the provider works. The demo therefore imports the provider class and its helpers from the modules
// that define them. The version of oidc-provider is pinned exactly, so these paths cannot change unnoticed. Remove this
// file when Node 20 is no longer supported.
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
