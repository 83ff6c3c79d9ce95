// The package has no types of its own.
declare module 'proxy-from-env' {
  /** The proxy for this address, or an empty string. */
  export function getProxyForUrl(url: string): string
}
