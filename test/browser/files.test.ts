// Static files in a real browser: pages behind a login with what they load, a folder, ranges of an audio file, and what the
// browser shows after a logout.
import { accessibilityProblems, browserTest as test } from '../helpers/chromium.js'
import { deployWithDemo } from '../helpers/deployment.js'
import { tempFolder } from '../helpers/temp-folder.js'

const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Report</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="page.css">
<h1>Secret figures</h1><img src="chart.svg" alt="A chart"><audio src="sound.wav" preload="metadata"></audio>
<script type="module" src="page.js"></script></html>`

const script = `const { total } = await (await fetch('data.json')).json()
document.body.append('Total: ' + total)`

/** Silence of 60 seconds. A browser that seeks in it requests a range. */
function wav(): Buffer {
  const samples = 8000 * 60
  const header = Buffer.alloc(44)
  header.write('RIFF', 0)
  header.writeUInt32LE(36 + samples, 4)
  header.write('WAVEfmt ', 8)
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(8000, 24)
  header.writeUInt32LE(8000, 28)
  header.writeUInt16LE(1, 32)
  header.writeUInt16LE(8, 34)
  header.write('data', 36)
  header.writeUInt32LE(samples, 40)
  return Buffer.concat([header, Buffer.alloc(samples, 128)])
}

test('a user opens the URL of a protected folder, signs in, and gets the page with everything that it loads, but not after the logout', async (t, visit) => {
  const wwwroot = await tempFolder(t, {
    'index.html': '<!doctype html><title>Welcome</title><link rel="icon" href="data:,"><h1>Welcome</h1>',
    'reports/index.html': page,
    'reports/page.css': 'h1 { color: rgb(1, 2, 3) }',
    'reports/page.js': script,
    'reports/data.json': '{"total":42}',
    'reports/chart.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>',
    'reports/sound.wav': wav()
  })
  const { url } = await deployWithDemo(t, { settings: { wwwroot, access: { files: ['/reports/**'] } } })
  const { page: tab } = await visit()
  const statuses = new Map<string, number[]>()
  tab.on('response', response => {
    const { pathname } = new URL(response.url())
    statuses.set(pathname, [...(statuses.get(pathname) ?? []), response.status()])
  })
  t.is((await tab.goto(`${url}reports?x=1`))?.status(), 401)
  t.deepEqual(await accessibilityProblems(tab), [])
  await tab.getByRole('link', { name: /sign in/i }).click()
  await tab.getByRole('button', { name: 'Ada Lovelace' }).click()
  await tab.getByText('Total: 42').waitFor()
  t.is(tab.url(), `${url}reports/?x=1`)
  t.is(await tab.evaluate(`getComputedStyle(document.querySelector('h1')).color`), 'rgb(1, 2, 3)')
  t.is(await tab.evaluate(`document.querySelector('img').naturalWidth`), 8)
  const position = await tab.evaluate(`new Promise((resolve, reject) => {
    const audio = document.querySelector('audio')
    audio.onerror = () => reject(new Error('the audio file cannot be played'))
    audio.onseeked = () => resolve(audio.currentTime)
    const seek = () => { audio.currentTime = 50 }
    if (audio.readyState > 0) seek()
    else audio.onloadedmetadata = seek
  })`)
  t.is(position, 50)
  t.true(statuses.get('/reports/sound.wav')?.every(status => status === 206))

  await tab.goto(`${url}api/auth/logout`)
  await tab.getByText('Welcome').waitFor()
  await tab.goBack()
  await tab.getByRole('link', { name: /sign in/i }).waitFor()
  t.is(await tab.getByText('Secret figures').count(), 0)
  await tab.goto(url)
  t.is(await tab.evaluate(`fetch('/reports/data.json').then(response => response.status)`), 401)
})

test('a page at a URL without .html, and relative links of a folder, work', async (t, visit) => {
  const link = (href: string, text: string) =>
    `<!doctype html><title>Page</title><link rel="icon" href="data:,"><a href="${href}">${text}</a>`
  const wwwroot = await tempFolder(t, {
    'index.html': link('about', 'About'),
    'about.html': link('docs', 'Docs'),
    'docs/index.html': link('deep/page', 'Deeper'),
    'docs/deep/page.html': link('../../', 'Home')
  })
  const { url } = await deployWithDemo(t, { settings: { wwwroot } })
  const { page: tab } = await visit()
  await tab.goto(url)
  for (const [name, path] of [
    ['About', 'about'],
    ['Docs', 'docs/'],
    ['Deeper', 'docs/deep/page'],
    ['Home', '']
  ] as const) {
    await tab.getByRole('link', { name }).click()
    await tab.waitForURL(url + path)
  }
  t.pass()
})
