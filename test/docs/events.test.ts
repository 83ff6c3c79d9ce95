import test from 'ava'
import { codeSpans, tableRows } from '../helpers/markdown.js'
import { filesBelow, readText } from '../helpers/repository.js'

// Operators search the log by event name, so docs/logs-and-metrics.md lists exactly the events that exist.

const written = new Set(
  filesBelow('src').flatMap(path => [...readText(path).matchAll(/\bevent: '(\w+)'/g)].map(([, name = '']) => name))
)

test('docs/logs-and-metrics.md lists every event that the server logs and no other', t => {
  const rows = tableRows(readText('docs/logs-and-metrics.md'))
  const head = rows.findIndex(([name]) => name === '`event`')
  const end = rows.findIndex(([name], index) => index > head && !name?.startsWith('`'))
  const events = rows.slice(head + 1, end).flatMap(([names = '']) => codeSpans(names))
  t.deepEqual(events.sort(), [...written].sort())
})
