import { listWith, stringWith, type ValueType } from './value-type.js'

// The types of the settings that contain names of headers for the API proxy.

// The syntax of a header name (`token` in RFC 9110 section 5.6.2).
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

// The headers of one connection (RFC 9110 section 7.6.1), and the headers that frame a message (RFC 9112 section 6).
const HOP_BY_HOP =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|http2-settings)$/i
const NEVER_SENT =
  /^(authorization|cookie2?|host|origin|referer|forwarded|x-forwarded-.*|x-real-ip|x-user-id|expect|via|x-request-id|sec-.*)$/i
// With these headers, a page could evade the methods of a rule, or a check that the upstream makes against requests of other sites.
const EVADES_CHECKS = /^(x-requested-with|x-http-method(-override)?|x-method-override)$/i
const NEVER_IN_A_RESPONSE =
  /^(set-cookie2?|access-control-.*|cross-origin-.*|(x-)?content-security-policy.*|x-webkit-csp|x-content-type-options|x-frame-options|x-xss-protection|strict-transport-security|permissions-policy.*|feature-policy|referrer-policy|origin-agent-cluster|document-policy.*|clear-site-data|service-worker-allowed|speculation-rules|sourcemap|x-sourcemap|x-accel-.*|x-sendfile|x-lighttpd-send-.*|refresh|alt-svc|server|via|www-authenticate|cache-control|vary|report(ing-endpoints|-to)|nel|public-key-pins.*|date|session-status|session-user|x-request-id)$/i
// The headers that browsers send by themselves, and those that a page of another site can set without a CORS preflight.
const SENT_BY_BROWSERS =
  /^(accept.*|content-.*|cache-control|pragma|range|if-.*|user-agent|dnt|priority|upgrade-insecure-requests|purpose|save-data|device-memory|downlink|dpr|ect|rtt|viewport-width|width|last-event-id|date|origin-.*|x-client-data|traceparent|tracestate)$/i

function headerNames(allowed: string, rejected: readonly RegExp[], reason: string): ValueType<readonly string[]> {
  return {
    allowed,
    // An empty list is allowed, because it removes the default headers.
    json: { type: ['string', 'array'], items: { type: 'string', pattern: TOKEN.source } },
    parse: listWith(
      { accepts: name => TOKEN.test(name) },
      { accepts: name => !rejected.some(pattern => pattern.test(name)), reason }
    )
  }
}

export const requestHeaderNames = headerNames(
  'header names separated by spaces, except hop-by-hop headers and headers for credentials, cookies and forwarding',
  [HOP_BY_HOP, NEVER_SENT, EVADES_CHECKS],
  'one of them must not be sent to an upstream'
)

export const responseHeaderNames = headerNames(
  'header names separated by spaces, except hop-by-hop headers and headers for cookies, CORS, security policies and caching',
  [HOP_BY_HOP, NEVER_IN_A_RESPONSE],
  'one of them must not come from an upstream'
)

export const csrfHeaderName: ValueType<string> = {
  allowed: 'the name of a header that no browser sends by itself, such as X-CSRF',
  json: { type: 'string', pattern: TOKEN.source },
  parse: stringWith(
    { accepts: name => TOKEN.test(name), reason: 'it is not a header name' },
    {
      accepts: name => ![HOP_BY_HOP, NEVER_SENT, SENT_BY_BROWSERS].some(pattern => pattern.test(name)),
      reason: 'browsers send this header by themselves'
    }
  )
}
