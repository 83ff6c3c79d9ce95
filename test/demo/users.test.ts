import test from 'ava'
import { createUsers } from '#src/demo/users.js'

test('if there are too many users, the one who was found or signed in longest ago is removed', t => {
  const users = createUsers(2)
  const ada = users.signIn('Ada')
  const grace = users.signIn('Grace')
  t.is(users.find(ada.id), ada)
  users.signIn('Zaha')
  t.is(users.find(grace.id), undefined)
  t.is(users.find(ada.id), ada)
})
