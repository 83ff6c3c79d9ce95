/**
 * Copies text to the clipboard. Browsers offer the clipboard on https and localhost only.
 * @param select puts the text into the page's selection, which can be copied where there is no clipboard
 * @returns true if the text was copied
 */
export async function copyText(text, select) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    select()
    return document.execCommand('copy')
  }
}
