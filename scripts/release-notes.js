// Prints the section of CHANGELOG.md for a tag such as v1.0.0, as the notes of a release on GitHub. Fails if package.json
// or CHANGELOG.md does not have this version. Reads both files in the working folder.
import { readFileSync } from 'node:fs'

const [tag = ''] = process.argv.slice(2)
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const changelog = readFileSync('CHANGELOG.md', 'utf8')

if (tag !== `v${version}`)
  fail(`The tag is ${tag || 'missing'}, but package.json has the version ${version}. Tag the release as v${version}.`)

const [, ...sections] = changelog.split(/^## /m)
const [newest = ''] = sections
const [heading = '', ...lines] = newest.split('\n')
if (heading.trim() !== version) {
  fail(
    `The first section of CHANGELOG.md is "${heading.trim()}". Replace this heading with "${version}", and tag the new commit.`
  )
}
const text = lines.join('\n').trim()
if (text === '') fail(`The section ${version} of CHANGELOG.md is empty.`)

process.stdout.write(`${withUrls(withoutLineBreaks(text))}\n`)

/** GitHub shows each line break in notes as a line break, so the lines of a paragraph or list item are joined. */
function withoutLineBreaks(markdown) {
  return markdown.replace(/(?<!\n)\n(?!\n| *[-*] | *\d+\. |#|\|) */g, ' ').replace(/^(#.*?) *$/gm, '$1')
}

/** Notes are not shown in the folder of the repository, so links to files need the URL of the repository. */
function withUrls(markdown) {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env
  if (!server || !repository) return markdown
  return markdown.replace(/\]\((?!\w+:|#)([^)]+)\)/g, `](${server}/${repository}/blob/${tag}/$1)`)
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}
