import test from 'ava'
import { readText } from '../helpers/repository.js'

test('the service contract has every section that a test of it names', t => {
  const headings = new Set(
    [...readText('docs/reference/contract.md').matchAll(/^#+ ([\d.]+?)\.? /gm)].map(([, id]) => id)
  )
  const titles = readText('test/web/contract.test.ts').matchAll(/contract\(\s*[`']([^:]*):|section ([\d.]+)/g)
  const named = [...titles].flatMap(([, clause = '', section = '']) => `${clause} ${section}`.match(/\d(\.\d)?/g) ?? [])
  t.true(named.length > 30)
  t.deepEqual(
    [...new Set(named)].filter(id => !headings.has(id)),
    []
  )
})
