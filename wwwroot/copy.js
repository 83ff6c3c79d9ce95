/**
 * Copies text to the clipboard. The clipboard API exists only on https and localhost. On other sites, this function
 * copies the selection with the older `execCommand`.
 * @param select a function that selects the text in the page
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
