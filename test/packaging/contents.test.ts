import { posix } from 'node:path'
import test from 'ava'
import { linksOf } from '../helpers/markdown.js'
import { pack } from '../helpers/packed.js'
import { filesBelow, packageJson, readText, textBelow } from '../helpers/repository.js'

const packed = pack()
const paths = packed.files.map(({ path }) => path)

/**
 * The files that belong in the package: the program, the files that it reads, and the files that an operator reads or
 * copies.
 */
const wanted = [
  /^package\.json$/,
  /^LICENSE$/,
  /^(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md$/,
  /^bin\/platform-auth-server\.js$/,
  /^dist\/([\w-]+\/)*[\w-]+\.(js|js\.map|d\.ts)$/,
  /^wwwroot\/[\w-]+\.(html|css|js)$/,
  /^config\/(minimal|single|dual|issuer|full)\.yaml$/,
  /^config\/schema\.json$/,
  /^deploy\/(Dockerfile(\.dockerignore)?|compose(\.(caddy|tls))?\.yaml|platform-auth-server(@\.service|-environment))$/,
  /^deploy\/kubernetes\/((recipes\/)?[\w-]+\.yaml|server\.env)$/,
  /^deploy\/monitoring\/[\w-]+\.(yaml|json)$/,
  /^deploy\/helm\/(\.helmignore|README\.md|Chart\.yaml|values\.yaml|values\.schema\.json|files\/alerts\.yaml)$/,
  /^deploy\/helm\/(templates|examples)\/\w[\w-]*\.(yaml|tpl|txt)$/,
  /^deploy\/proxy\/(nginx(-forward-auth|-tls)?\.conf|Caddyfile(-forward-auth)?|traefik(-forward-auth(-routes)?)?\.yaml)$/,
  /^docs\/([\w-]+\/)*[\w-]+\.(md|yaml|svg)$/,
  /^src\/pages\/client\/(client\.(js|d\.ts)|page-script\.js)$/,
  /^src\/pages\/texts\/[a-z]{2}\.json$/,
  /^examples\/[\w-]+\.js$/,
  /^examples\/README\.md$/,
  /^examples\/viewer(-without-token)?\/(platform-auth-server\.config\.yaml|wwwroot\/index\.html)$/
]

test('the package contains the needed files and no others', t => {
  const unwanted = paths.filter(path => !wanted.some(pattern => pattern.test(path)))
  t.deepEqual(unwanted, [])
  const missing = wanted.filter(pattern => !paths.some(path => pattern.test(path)))
  t.deepEqual(missing, [])
  t.log(`${paths.length} files, ${packed.size} bytes packed, ${packed.unpackedSize} unpacked`)
})

test('the package contains the bundle, and the types of every module and of no module that was removed', t => {
  const bundle = filesBelow('dist/bundle')
  const types = filesBelow('src')
    .filter(path => path.endsWith('.ts') && !path.endsWith('.d.ts'))
    .map(path => path.replace(/^src/, 'dist').replace(/\.ts$/, '.d.ts'))
  t.true(bundle.includes('dist/bundle/main.js'))
  t.deepEqual(paths.filter(path => path.startsWith('dist/')).sort(), [...bundle, ...types].sort())
})

test('the bundle imports or requires every dependency and contains none', t => {
  const code = textBelow('dist/bundle')
  const imported = [...code.matchAll(/(?:from |import\(?\s*|require\()["']([^."'][^"']*)["']/g)].map(
    ([, name = '']) => `${name}/`
  )
  const missing = Object.keys(packageJson.dependencies).filter(
    name => !imported.some(path => path.startsWith(`${name}/`))
  )
  t.deepEqual(missing, [])
})

test('the packed types cite no document that is not in the package', t => {
  for (const path of paths.filter(path => path.endsWith('.d.ts'))) {
    const text = readText(path)
    t.notRegex(text, /service contract|service-spec/, path)
    const documents = [...text.matchAll(/[\w/-]+\.md\b/g)].map(([document]) => document)
    const unpacked = documents.filter(document => !paths.includes(document))
    t.deepEqual(unpacked, [], path)
  }
})

// npm 12 warns about each of these packageJson.scripts when the package is installed from a file or a git address.
test('the package has no script that npm would run, or ask about, when it is installed', t => {
  for (const script of ['preinstall', 'install', 'postinstall', 'prepare'])
    t.false(script in packageJson.scripts, script)
})

test('every file that the packed documents link to is in the package', t => {
  for (const path of paths.filter(path => path.endsWith('.md'))) {
    for (const { target } of linksOf(readText(path))) {
      if (target === '' || /^\w+:/.test(target)) continue
      const file = posix.join(posix.dirname(path), target).replace(/\/$/, '')
      const isThere = paths.some(one => one === file || one.startsWith(`${file}/`))
      t.true(isThere, `${path} links to ${target}`)
    }
  }
})
