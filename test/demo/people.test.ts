import test from 'ava'
import { createPeople } from '#src/demo/people.js'

test('if there are too many people, the one not seen for longest is removed', t => {
  const people = createPeople(2)
  const ada = people.signIn('Ada')
  const grace = people.signIn('Grace')
  t.is(people.find(ada.id), ada)
  people.signIn('Zaha')
  t.is(people.find(grace.id), undefined)
  t.is(people.find(ada.id), ada)
})

test('an id is the same in every run, so a restarted demo knows its people again', t => {
  t.is(createPeople().signIn('Ada Lovelace').id, createPeople().signIn('ada lovelace').id)
})

test('user name and email address are plain ASCII, whatever the name', t => {
  const people = createPeople()
  for (const [name, userName] of [
    ['Antoni Gaudí', 'antoni.gaudi'],
    ['Kenzō Tange', 'kenzo.tange'],
    ['王小明', people.signIn('王小明').id.toLowerCase()]
  ] as const) {
    t.like(people.signIn(name), { name, userName, email: `${userName}@example.com` })
  }
})
