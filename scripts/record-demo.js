// Records the picture of the README: drives Chromium through the demo and writes docs/demo.svg, an animation of
// screenshots. Run it after a change of the starter page: npm run build && npm run record
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'

const out = new URL('../docs/demo.svg', import.meta.url)
const size = { width: 838, height: 680 }
const captionHeight = 48
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'

// As `npm run demo` starts it.
const flags = ['--demo', '--mode', 'dual', '--demo-token-lifetime', '120', '--port', '0']
const server = spawn(process.execPath, ['bin/platform-auth-server.js', ...flags], {
  cwd: new URL('../', import.meta.url),
  stdio: ['ignore', 'pipe', 'inherit']
})
const url = await listeningAddress(server)
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
try {
  const frames = await record(await browser.newPage({ viewport: size, deviceScaleFactor: 2 }))
  const svg = animation(frames)
  writeFileSync(out, svg)
  process.stdout.write(`docs/demo.svg: ${frames.length} frames, ${Math.round(svg.length / 1024)} KiB\n`)
} finally {
  await browser.close()
  server.kill()
}

/** Returns the URL of the demo. A demo that is not on a terminal logs JSON. */
async function listeningAddress({ stdout }) {
  for await (const line of createInterface(stdout)) {
    const { event, url } = JSON.parse(line)
    if (event === 'server_started') return url
  }
  throw new Error('The demo did not start.')
}

/**
 * Signs in and sends the 50 requests. Returns the frames, each with its picture, its caption, its seconds and the position
 * of a click.
 */
async function record(page) {
  const frames = []
  const cdp = await page.context().newCDPSession(page)

  async function frame(caption, seconds, target) {
    const { data } = await cdp.send('Page.captureScreenshot', { format: 'webp', quality: 70 })
    const box = await target?.boundingBox()
    const click = box && { x: box.x + box.width / 2, y: box.y + box.height / 2 }
    const texts = await page.locator('h1, h2, #intro, .button').filter({ visible: true }).allInnerTexts()
    frames.push({ data, caption, seconds, click, texts })
  }

  await page.goto(url)
  const signIn = page.getByRole('link', { name: 'Sign in' })
  await signIn.waitFor()
  await frame('1. Your page sends users to /api/auth/login', 2.5, signIn)
  await signIn.click()
  const ada = page.getByRole('button', { name: 'Ada Lovelace' })
  await ada.waitFor()
  await frame('2. They sign in at the identity provider, which is built into the demo', 2.5, ada)
  await ada.click()
  await page.getByText('You are signed in as Ada Lovelace').waitFor()
  // This part of the page contains a path of this machine.
  await page.locator('#next').evaluate(({ style }) => {
    style.display = 'none'
  })
  const fifty = page.getByRole('button', { name: 'send 50 requests' })
  await frame('3. Back on the page, Ada lets her token expire and sends 50 requests', 3.5, fifty)
  await fifty.click()
  await page.getByText('50 of 50 requests').waitFor()
  await fifty.evaluate(button => button.scrollIntoView())
  // The colours of the picture change with a transition.
  await page.waitForTimeout(800)
  await frame('4. One refresh, 50 responses, and Ada is still signed in', 4)
  return frames
}

/** Returns an SVG that shows the frames one after the other. With reduced motion, it shows only the last frame. */
function animation(frames) {
  const { width, height } = size
  const total = frames.reduce((sum, { seconds }) => sum + seconds, 0)
  const percent = seconds => `${Math.round((seconds / total) * 10_000) / 100}%`
  let start = 0
  const rules = frames.map(({ seconds }, index) => {
    const [from, to] = [percent(start), percent(start + seconds)]
    start += seconds
    const hiddenBefore = index === 0 ? '' : `0% { visibility: hidden } `
    const hiddenAfter = index === frames.length - 1 ? '' : ` ${to} { visibility: hidden }`
    return `@keyframes k${index} { ${hiddenBefore}${from} { visibility: visible }${hiddenAfter} } #f${index} { animation: k${index} ${total}s step-end infinite }`
  })
  const groups = frames.map(({ data, caption, click, texts }, index) => {
    const ring = click ? `<circle cx="${click.x}" cy="${click.y}" r="26"/>` : ''
    const picture = `<image width="${width}" height="${height}" href="data:image/webp;base64,${data}"/>`
    return `<g id="f${index}"><desc>${texts.join('\n')}</desc>${picture}${ring}<text x="${width / 2}" y="${height + 30}">${caption}</text></g>`
  })
  const ids = frames.map((_, index) => `#f${index}`)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + captionHeight}" width="${width}" height="${height + captionHeight}">
<title>A user signs in to the demo</title>
<style>
g { visibility: hidden }
rect { fill: #1b1f2a }
text { fill: #fff; font: 600 17px system-ui, sans-serif; text-anchor: middle }
circle { fill: #f5a62333; stroke: #f5a623; stroke-width: 4 }
${rules.join('\n')}
@media (prefers-reduced-motion: reduce) { ${ids.join(', ')} { animation: none } ${ids.at(-1)} { visibility: visible } }
</style>
<rect width="${width}" height="${height + captionHeight}"/>
${groups.join('\n')}
</svg>
`
}
