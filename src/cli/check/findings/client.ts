import { randomBytes } from 'node:crypto'
import { OAuthError, ProviderError } from '../../../provider/errors.js'
import { type Finding, findingsFor } from '../finding.js'
import type { Provider } from '../provider.js'
import { type CheckedRequest, findingOfError, settingOfEndpoint } from '../request-errors.js'

const { ok, warning, failed } = findingsFor('client')

/**
 * Sends a made-up code. If the client id and secret are right, the provider rejects the code (`invalid_grant`). Otherwise
 * the provider rejects the client and does not check the code (RFC 6749 section 5.2).
 */
export async function client({ config, idp }: Provider): Promise<Finding[]> {
  const { tokenEndpoint } = await idp.metadata()
  const request: CheckedRequest = {
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
      failed(
        'The token endpoint gave tokens for a made-up code.',
        'Do not use this provider. Compare its address with its documentation.'
      )
    ]
  } catch (error) {
    return [findingOfClientError(error, request)]
  }
}

function findingOfClientError(error: unknown, request: CheckedRequest): Finding {
  // The status 401 means that the client id or secret is wrong (RFC 6749 section 5.2), even if the error code is not
  // invalid_client. Keycloak sends unauthorized_client.
  if (error instanceof OAuthError) return error.status === 401 ? wrongCredentials(error) : findingOfCode(error)
  if (error instanceof ProviderError && (error.status === 401 || error.status === 403)) {
    return failed(
      `The token endpoint rejects this client (${error.status}) and gives no reason.`,
      `${compareCredentials} If they are right, ask the provider if it blocks this machine.`
    )
  }
  return findingOfError(error, request)
}

const compareCredentials = "Compare platform.clientId and platform.clientSecret with the application's page."

function wrongCredentials({ error, status }: Pick<OAuthError, 'error' | 'status'>): Finding {
  return failed(
    `The client id or secret is wrong. The token endpoint rejects the client (${status} ${error}).`,
    `${compareCredentials} If they are right, set platform.clientAuthentication to its other value.`
  )
}

function findingOfCode({ error, status }: OAuthError): Finding {
  switch (error) {
    case 'invalid_grant':
      return ok('The client id and secret work. The token endpoint rejected only the made-up code (invalid_grant).')
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
        `The token endpoint rejected a made-up code with an unusual error (${status} ${error}), so the secret may be wrong.`,
        `Sign in once. If that fails, look for ${error} in the provider's documentation.`
      )
  }
}
