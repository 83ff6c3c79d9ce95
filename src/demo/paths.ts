/** The paths of the endpoints, as on the platform. Only the user info endpoint of the platform is on another host. */
export const paths = {
  authorization: '/authentication/v2/authorize',
  token: '/authentication/v2/token',
  revocation: '/authentication/v2/revoke',
  endSession: '/authentication/v2/logout',
  jwks: '/authentication/v2/keys',
  userInfo: '/userinfo',
  signIn: '/sign-in'
} as const
