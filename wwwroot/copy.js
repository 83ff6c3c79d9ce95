/**
 * Copies text to the clipboard. Browsers offer the clipboard on https and localhost only.
 * @param select selects the text in the page, so that it can be copied without the clipboard API
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
