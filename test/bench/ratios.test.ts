import test from 'ava'

// The benchmark is JavaScript without declarations.
const load = () => import(`${new URL('../../bench/ratios.js', import.meta.url)}`)

test('a ratio that is more than 7 % worse than the recorded one is found, and a new ratio is not', async t => {
  const { compareRatios } = await load()
  const recorded = { token: 1.5, startup: 2, redis: 1.2 }
  const compared = compareRatios(recorded, { token: 1.6, startup: 2.15, redis: 1.1, 'new one': 9 })
  t.deepEqual(
    compared.map(({ name, isWorse }: { name: string; isWorse: boolean }) => [name, isWorse]),
    [
      ['token', false],
      ['startup', true],
      ['redis', false],
      ['new one', false]
    ]
  )
})

test('a comparison on a busy machine is refused', async t => {
  const { refusal } = await load()
  t.is(refusal(0.2), undefined)
  t.regex(refusal(0.9), /0\.9/)
})
