import test from 'ava'
import { parseJson } from '#src/base/json.js'
import { meaningOf } from '#src/provider/meaning.js'
import { OAuthError } from '#src/provider/provider-error.js'
import { assertCases } from '../helpers/case-file.js'

test('the meaning of a response', t =>
  assertCases(t, 'test/provider/meaning.txt', response => {
    const [status = '', ...body] = response.split(' ')
    return meaningOf({ status: Number(status), json: parseJson(body.join(' ')) })
  }))

test('an OAuth error has the meaning of the response from which it came', t => {
  const error = (status: number, code: string) => new OAuthError({ error: code, status, endpoint: 'token' })
  t.is(error(200, 'bad_refresh_token').meaning, 'end')
  t.is(error(400, 'invalid_request').meaning, 'ambiguous')
  t.is(error(401, 'invalid_client').meaning, 'weak')
})
