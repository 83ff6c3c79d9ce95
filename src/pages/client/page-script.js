// Runs on the error pages. Without it, they still explain, link, and load themselves again.
const waiting = document.querySelector('[data-while]')
const isFramed = globalThis.top !== globalThis

for (const link of document.querySelectorAll('a[data-here]')) {
  // The server never sees the fragment of a URL. The sign-in returns to the URL of this page, so it can keep the fragment.
  const addFragment = () => {
    const url = new URL(link.href)
    url.searchParams.set('return_to', location.pathname + location.search + location.hash)
    link.href = url.href
  }
  if (location.hash) addFragment()
  addEventListener('hashchange', addFragment)
  // The window around a frame may contain something that the user has typed.
  if (isFramed) Object.assign(link, { target: '_blank', rel: 'noopener' })
}

for (const late of document.querySelectorAll('[data-after]')) {
  setTimeout(() => late.removeAttribute('hidden'), late.dataset.after * 1000)
}

if (waiting) waitForServer(waiting.dataset)

/** Asks in the background, and loads the page once when this helps, so that screen readers and the keyboard keep their place. */
async function waitForServer({ while: statuses, seconds, again, next, method }) {
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && ask())
  for (let pause = seconds ? Number(seconds) : isFramed ? 3 : 0; pause > 0; pause = Math.min(60, pause * 1.5)) {
    await new Promise(resolve => setTimeout(resolve, pause * 1000))
    await ask()
    if (again) waiting.textContent = again.replace('{{when}}', inWords(Math.round(Math.min(60, pause * 1.5))))
  }

  async function ask() {
    const options = {
      method,
      mode: 'same-origin',
      redirect: 'manual',
      cache: 'no-store',
      headers: { Accept: 'text/html' }
    }
    const response = next ? {} : await fetch(location.href, options).catch(() => undefined)
    if (!response || statuses.split(' ').includes(String(response.status))) return
    if (next) location.replace(next)
    else location.reload()
    await new Promise(() => {})
  }
}

function inWords(seconds) {
  return new Intl.RelativeTimeFormat(document.documentElement.lang).format(seconds, 'second')
}
