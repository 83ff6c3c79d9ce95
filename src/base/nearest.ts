/** Returns the candidate that a misspelt word most likely stands for, or undefined when none is similar enough. */
export function nearest(
  word: string,
  candidates: readonly string[],
  formsOf: (candidate: string) => readonly string[] = candidate => [candidate]
): string | undefined {
  let best: { candidate: string; distance: number } | undefined
  for (const candidate of candidates) {
    const distance = Math.min(
      ...formsOf(candidate).map(form => distanceBetween(word.toLowerCase(), form.toLowerCase()))
    )
    if (distance < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { candidate, distance }
  }
  return best && best.distance <= Math.max(1, word.length * 0.4) ? best.candidate : undefined
}

function distanceBetween(word: string, candidate: string): number {
  if (word === candidate) return 0
  // If one word begins with the other, the ending was forgotten or added. This counts as a single edit.
  const [short, long] = word.length < candidate.length ? [word, candidate] : [candidate, word]
  if (short.length >= 4 && long.startsWith(short)) return 1
  return editDistance(word, candidate)
}

/** Counts the letters to insert, delete, change or swap with their neighbour (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY
  for (let row = 1; row <= a.length; row++) {
    const line = [row]
    rows.push(line)
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      line[column] = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + (same ? 0 : 1),
        swapped ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY
      )
    }
  }
  return at(a.length, b.length)
}
