import test from 'ava'
import { createPeople } from '#src/demo/people.js'

test('if there are too many people, the one who was found or signed in longest ago is removed', t => {
  const people = createPeople(2)
  const ada = people.signIn('Ada')
  const grace = people.signIn('Grace')
  t.is(people.find(ada.id), ada)
  people.signIn('Zaha')
  t.is(people.find(grace.id), undefined)
  t.is(people.find(ada.id), ada)
})

test('a person has the same id after a restart of the demo', t => {
  t.is(createPeople().signIn('Ada Lovelace').id, createPeople().signIn('ada lovelace').id)
})

test('the user name and the email address are plain ASCII for every name', t => {
  const people = createPeople()
  for (const [name, userName] of [
    ['Antoni Gaudí', 'antoni.gaudi'],
    ['Kenzō Tange', 'kenzo.tange'],
    ['王小明', people.signIn('王小明').id.toLowerCase()]
  ] as const) {
    t.like(people.signIn(name), { name, userName, email: `${userName}@example.com` })
  }
})
