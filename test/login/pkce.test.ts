import test from 'ava'
import { codeChallengeOf } from '#src/login/pkce.js'

test('the challenge is that of RFC 7636 appendix B', t => {
  t.is(codeChallengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'), 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
})
