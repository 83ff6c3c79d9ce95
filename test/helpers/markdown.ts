// A minimal Markdown reader, to compare the documents with the rest of the repository.

export interface Link {
  /** The path, or an empty text for a link into the same document. */
  readonly target: string
  readonly anchor: string | undefined
}

/** Every link and image outside of code. */
export function linksOf(markdown: string): Link[] {
  return [...withoutCode(markdown).matchAll(/\]\(<?([^)\s>]*)>?(?:\s+"[^"]*")?\)/g)].map(([, address = '']) => {
    const [target = '', anchor] = address.split('#', 2)
    return { target, anchor }
  })
}

/** The anchors that GitHub creates for the headings. */
export function anchorsOf(markdown: string): string[] {
  const seen = new Map<string, number>()
  return [...withoutFences(markdown).matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = '']) => {
    const anchor = heading
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(anchor) ?? 0
    seen.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  })
}

/** The cells of every table row, header rows included. */
export function tableRows(markdown: string): string[][] {
  return [...withoutFences(markdown).matchAll(/^ *\|(.+)\| *$/gm)]
    .map(([, row = '']) => row.split(/(?<!\\)\|/).map(cell => cell.trim()))
    .filter(cells => !cells.every(cell => /^:?-+:?$/.test(cell)))
}

/** The texts between backticks, outside of fenced blocks. */
export function codeSpans(markdown: string): string[] {
  return [...withoutFences(markdown).matchAll(/`([^`]+)`/g)].map(([, code = '']) => code)
}

/** The fenced blocks of code. The language of a block is the word after the opening fence. */
export function fencedBlocks(markdown: string) {
  return [...markdown.matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text
  }))
}

/** The lines of every fenced block in this language. */
export function fencedLines(markdown: string, language: string): string[] {
  return fencedBlocks(markdown)
    .filter(block => block.language === language)
    .flatMap(({ text }) => linesOf(text))
}

/** The lines that are not blank, trimmed. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
}

function withoutFences(markdown: string): string {
  return markdown.replace(/^ *```.*?^ *```$/gms, '')
}

function withoutCode(markdown: string): string {
  return withoutFences(markdown).replace(/`[^`]*`/g, '')
}
