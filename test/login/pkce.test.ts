import test from 'ava'
import { codeChallengeOf } from '#src/login/pkce.js'

test('the code challenge of the verifier in RFC 7636 appendix B is the one given there', t => {
  t.is(codeChallengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'), 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
})
