// The part of the starter page that exists only in a demo. It makes the access token expire, sends fifty requests in
// parallel, and draws what happened.
const requests = 50
const svg = 'http://www.w3.org/2000/svg'

const parts = `
<h2 id="fifty-heading">Fifty requests, one refresh</h2>
<p>A refresh token works only once, but a page often has several requests in progress when its token expires. A server that sends it for each of them loses the session.</p>
<p class="before">After you sign in, one click lets your token expire and sends 50 requests. This server sends one refresh, and every request gets its response.</p>
<p class="actions"><button class="button" type="button">Expire my token and send 50 requests</button></p>
<div class="picture" aria-hidden="true">
<svg viewBox="0 0 480 110"><g class="lines"></g><g class="dots"></g><path class="refresh" d="M276 55H454"/><text x="365" y="42"></text><circle cx="264" cy="55" r="12"/><circle cx="466" cy="55" r="12"/></svg>
<p><span>50 requests</span><span>this server</span><span>identity provider</span></p>
</div>
<p class="outcome" role="status"></p>`

/**
 * Fills the section with a button and a picture.
 * @param mode the mode of the server; in dual mode, one refresh consists of two token requests
 * @param then is called after the requests, because the page has an older token
 */
export function showFifty(section, mode, then) {
  section.innerHTML = parts
  const button = section.querySelector('button')
  const lines = Array.from({ length: requests }, (_, index) => drawRequest(section, index))
  button.addEventListener('click', async () => {
    button.disabled = true
    for (const line of lines) look(line, 'asked')
    section.querySelector('text').textContent = ''
    section.querySelector('.refresh').classList.remove('used')
    section.querySelector('.outcome').textContent = 'Sending 50 requests …'
    section.querySelector('.outcome').textContent = await run(section, mode, lines).catch(
      () => 'The server could not be reached. Check that it is running, and try again.'
    )
    button.disabled = false
    then()
  })
}

/** Returns a sentence about what happened. */
async function run(section, mode, lines) {
  const before = await calls()
  const expired = await fetch('demo/expire', { method: 'POST' })
  if (!expired.ok) return 'You are no longer signed in. Sign in, and try again.'
  const statuses = await Promise.all(
    lines.map(async line => {
      const { status } = await fetch('api/auth/profile', { cache: 'no-store' })
      look(line, status === 200 ? 'good' : 'bad')
      return status
    })
  )
  const after = await calls()
  const sent = after.refreshToken - before.refreshToken
  const refreshes = mode === 'dual' ? sent / 2 : sent
  section.querySelector('text').textContent = refreshes === 1 ? '1 refresh' : `${refreshes} refreshes`
  section.querySelector('.refresh').classList.toggle('used', sent > 0)
  const count = wanted => statuses.filter(status => status === wanted).length
  const detail = mode === 'dual' ? ' (two token requests, one for each of your two tokens)' : ''
  return [
    `Your token had expired. ${count(200)} of ${requests} requests got 200.`,
    `The identity provider received ${refreshes === 1 ? 'one refresh' : `${refreshes} refreshes`}${detail}.`,
    count(401) === 0 ? 'No user was signed out.' : 'You were signed out.',
    'Requests that arrived during the refresh waited for it, and later ones got its result.'
  ].join(' ')
}

async function calls() {
  return (await fetch('demo/calls', { cache: 'no-store' })).json()
}

/** Draws a request as a dot with a line to the server. */
function drawRequest(section, index) {
  const x = 6 + (index % 10) * 14
  const y = 11 + Math.floor(index / 10) * 22
  const line = document.createElementNS(svg, 'path')
  line.setAttribute('d', `M${x} ${y}C190 ${y} 200 55 252 55`)
  const dot = document.createElementNS(svg, 'circle')
  for (const [name, value] of Object.entries({ cx: x, cy: y, r: 4 })) dot.setAttribute(name, value)
  section.querySelector('.lines').append(line)
  section.querySelector('.dots').append(dot)
  return [line, dot]
}

function look(line, name) {
  for (const shape of line) shape.setAttribute('class', name)
}
