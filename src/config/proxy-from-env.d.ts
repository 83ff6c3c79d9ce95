// The package contains no types.
declare module 'proxy-from-env' {
  /** Returns the proxy for the URL, or an empty string. */
  export function getProxyForUrl(url: string): string
}
