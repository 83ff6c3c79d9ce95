import test from 'ava'
import { filesBelow, readText } from '../helpers/repository.js'

const pages = filesBelow('docs').filter(path => path.endsWith('.md'))
const overviews = ['README.md', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']
const ofFolders = ['deploy/helm/README.md', 'examples/README.md', 'bench/README.md']

/** Counts words without the lines of tables. */
function wordsOf(path: string): number {
  const text = readText(path).replaceAll('|', ' ').replace(/-{2,}/g, '')
  return text.match(/\S+/g)?.length ?? 0
}

test('the documents have at most 24,900 words, and the README has at most 700, so that somebody can read them', t => {
  const counts = [...overviews, ...pages, ...ofFolders].map(path => ({ path, words: wordsOf(path) }))
  const sum = counts.reduce((total, { words }) => total + words, 0)
  const longest = counts.toSorted((a, b) => b.words - a.words).slice(0, 5)
  t.true(sum <= 24_900, `${sum} words, most of them in ${longest.map(({ path }) => path).join(', ')}`)
  t.true(wordsOf('README.md') <= 700)
  t.true(sum > 10_000)
})
