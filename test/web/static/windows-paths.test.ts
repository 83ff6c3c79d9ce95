// The server has not been run on Windows. Its code for paths runs here with the path rules of Windows.
import { win32 } from 'node:path'
import test from 'ava'
import fc from 'fast-check'
import { filePatterns, isProtectedFile, isProtectedPath } from '#src/config/types/protected-files.js'
import { pathBelowRoot } from '#src/web/static/find-file.js'
import { words } from '../../helpers/words.js'

const onWindows = (urlPath: string) => pathBelowRoot(urlPath, win32)

test('with Windows paths, a URL leads to a file below the root, with slashes, or to none', t => {
  for (const [urlPath, expected] of [
    ['/', ''],
    ['/reports/data.json', 'reports/data.json'],
    ['/reports%5Cdata.json', 'reports/data.json'],
    ['/reports\\data.json', 'reports/data.json'],
    ['/a/../reports/', 'reports/'],
    ['/.well-known/x', '.well-known/x']
  ] as const)
    t.is(onWindows(urlPath), expected, urlPath)
  for (const urlPath of words`
    /../x /..%5Cx /a%5C..%5C..%5Cx /..%2fx /C:/x /C%3A%5Cx /a/C:x /x.txt::$DATA /x.txt:stream /reports./x /reports%20/x /x.
    /x%20 /.env /a%5C.env /%5C%5Cserver%5Cshare%5C..%5C..%5C..%5Cx /a%3Fb /a*b /%3Ca%3E /a%7Cb /a%22b /.well-known./x`) {
    t.is(onWindows(urlPath), undefined, urlPath)
  }
})

test('with Windows paths, no URL leads out of the root or around access.files', t => {
  const parsed = filePatterns.parse('/secret /a/b')
  const patterns = 'value' in parsed ? parsed.value : []
  const piece = fc.constantFrom(...words`/ \ %5C %2F .. . %2e C: secret SECRET Secret a b A x : %3A ::$DATA ~1 %20 ;`)
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
      const path = onWindows(`/${pieces.join('')}`)
      if (path === undefined) return true
      const root = 'C:\\www'
      const opened = win32.join(root, path)
      if (opened !== root && !opened.startsWith(`${root}\\`)) return false
      const names = win32.relative(root, opened).toLowerCase().split('\\')
      const isSecret = names[0] === 'secret' || (names[0] === 'a' && names[1] === 'b')
      return !isSecret || (isProtectedFile(path, patterns) && isProtectedPath(path, patterns))
    }),
    { numRuns: 5000 }
  )
  t.pass()
})
