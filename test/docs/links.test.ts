import { existsSync, readdirSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import test from 'ava'
import { anchorsOf, linksOf } from '../helpers/markdown.js'
import { filesBelow, readText, repository } from '../helpers/repository.js'

const texts = [
  ...readdirSync(repository).filter(name => name.endsWith('.md')),
  ...filesBelow('docs', 'deploy', 'examples').filter(path => path.endsWith('.md')),
  'bench/README.md'
]

for (const path of texts) {
  test(`every link in ${path} has an existing file and heading as its target`, t => {
    const links = linksOf(readText(path))
    for (const { target, anchor } of links) {
      if (/^(https?|mailto):/.test(target)) continue
      const file = target === '' ? path : posix.join(posix.dirname(path), target)
      t.true(existsSync(repository + file), `${target} is missing`)
      if (anchor === undefined || !existsSync(repository + file)) continue
      t.true(statSync(repository + file).isFile() && file.endsWith('.md'), `${target} has no headings`)
      t.true(anchorsOf(readText(file)).includes(anchor), `${target} has no heading for #${anchor}`)
    }
    t.pass(`${links.length} links`)
  })
}
