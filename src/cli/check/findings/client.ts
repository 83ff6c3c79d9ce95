import { randomBytes } from 'node:crypto'
import { OAuthError, UpstreamError } from '../../../idp/errors.js'
import { type Finding, findingsFor } from '../finding.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, findingOfError, settingOfEndpoint } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('client')

/**
 * Sends a code that nobody issued. A provider that knows this client refuses the code (`invalid_grant`); one that does
 * not refuses the client, before it looks at the code (RFC 6749 section 5.2).
 */
export async function client({ config, idp }: Provider): Promise<Finding[]> {
  const { tokenEndpoint } = await idp.metadata()
  const asked: CheckedRequest = {
    check: 'client',
    endpoint: 'The token endpoint',
    url: tokenEndpoint,
    setting: settingOfEndpoint(config, 'tokenEndpoint'),
    timeoutSeconds: config.platform.timeoutSeconds
  }
  try {
    const random = () => randomBytes(32).toString('base64url')
    await idp.authorizationCodeGrant({ code: random(), codeVerifier: config.platform.pkce ? random() : undefined })
    return [
      failed('The token endpoint gave tokens for a made-up code.', 'Do not use this provider; compare its address.')
    ]
  } catch (error) {
    return [findingOfRefusal(error, asked)]
  }
}

function findingOfRefusal(error: unknown, asked: CheckedRequest): Finding {
  // RFC 6749 section 5.2 keeps 401 for a client that failed to authenticate. Keycloak says unauthorized_client with it.
  if (error instanceof OAuthError) return error.status === 401 ? wrongCredentials(error) : findingOfCode(error)
  if (error instanceof UpstreamError && (error.status === 401 || error.status === 403)) {
    return failed(
      `The token endpoint turns this client away (${error.status}), without saying why.`,
      `${renewCredentials} If they are right, ask the provider whether it lets this machine in.`
    )
  }
  return findingOfError(error, asked)
}

const renewCredentials = "Compare platform.clientId and platform.clientSecret with the application's page."

function wrongCredentials({ error, status }: Pick<OAuthError, 'error' | 'status'>): Finding {
  return failed(
    `Client id or secret is wrong: the token endpoint refuses the client (${status} ${error}).`,
    `${renewCredentials} If they are right, set platform.clientAuthentication to the other way.`
  )
}

function findingOfCode({ error, status }: OAuthError): Finding {
  switch (error) {
    case 'invalid_grant':
      return ok('Client id and secret work: the token endpoint rejected only the made-up code (invalid_grant).')
    case 'invalid_client':
      return wrongCredentials({ error, status })
    case 'unauthorized_client':
    case 'unsupported_grant_type':
      return failed(
        `The token endpoint does not let this client exchange codes (${status} ${error}).`,
        'Register the application as a web application that may use the authorization code grant.'
      )
    default:
      return warning(
        `The token endpoint refused a made-up code in its own way (${status} ${error}), so the secret is not proved.`,
        `Sign in once; look for ${error} in the provider's documentation if that fails.`
      )
  }
}
