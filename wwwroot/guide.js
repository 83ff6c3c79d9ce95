// Adds a bar with a copy button above every code sample.
import { copyText } from './copy.js'

for (const pre of document.querySelectorAll('pre')) {
  const { name } = pre.dataset
  // With a tabIndex, code that is wider than the page can be scrolled by keyboard too.
  Object.assign(pre, { tabIndex: 0, role: 'region', ariaLabel: name })
  const note = element('span', { role: 'status' })
  const button = element('button', { type: 'button', className: 'button second', ariaLabel: `Copy ${name}` }, 'Copy')
  button.addEventListener('click', async () => {
    note.textContent = ''
    const isCopied = await copyText(pre.textContent, () => getSelection().selectAllChildren(pre))
    note.textContent = isCopied ? 'Copied.' : 'The code is selected. Copy it by hand.'
  })
  pre.before(element('p', {}, element('span', {}, name), note, button))
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}
