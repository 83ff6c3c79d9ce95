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

test('the user name and the email address are plain ASCII for every name, and the id stays after a restart', t => {
  const users = createUsers()
  for (const [name, userName] of [
    ['Antoni Gaudí', 'antoni.gaudi'],
    ['Kenzō Tange', 'kenzo.tange'],
    ['王小明', users.signIn('王小明').id.toLowerCase()]
  ] as const) {
    t.like(users.signIn(name), { name, userName, email: `${userName}@example.com` })
  }
  t.is(createUsers().signIn('Ada Lovelace').id, createUsers().signIn('ada lovelace').id)
})
