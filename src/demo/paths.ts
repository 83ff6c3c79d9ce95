/** The endpoint paths. They are those of the platform, except that the platform has user info on another host. */
export const paths = {
  authorization: '/authentication/v2/authorize',
  token: '/authentication/v2/token',
  revocation: '/authentication/v2/revoke',
  endSession: '/authentication/v2/logout',
  jwks: '/authentication/v2/keys',
  userInfo: '/userinfo',
  signIn: '/sign-in'
} as const
