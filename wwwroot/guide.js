// Colours every code sample, and adds a bar with a copy button above it.
import { copyText } from './copy.js'

const syntax =
  /(?<comment><!--.*?-->|\/\/.*)|(?<string>'[^']*'|"[^"]*"|`[^`]*`)|(?<word><\/?!?\w+|--[\w-]+|\b(?:async|await|catch|const|else|function|if|import|new|return|throw|try)\b)/g

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
  colour(pre.firstChild)
  pre.before(element('p', {}, element('span', {}, name), note, button))
}

/** Puts each comment, string, keyword, tag and flag of a code sample into an element with a colour. */
function colour(code) {
  const text = code.textContent
  let end = 0
  code.replaceChildren()
  for (const { 0: found, index, groups } of text.matchAll(syntax)) {
    const [className] = Object.entries(groups).find(([, part]) => part !== undefined)
    code.append(text.slice(end, index), element('span', { className }, found))
    end = index + found.length
  }
  code.append(text.slice(end))
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}
