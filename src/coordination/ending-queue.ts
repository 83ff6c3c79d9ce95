/** Something that ends at a moment; where it stands in the queue is for the queue alone to know. */
export interface Ending {
  readonly until: number
  /** Tells apart those that end together. */
  readonly order: number
  place: number
}

/** Things in the order in which they end. Any of them can leave before its turn. */
export interface EndingQueue<E extends Ending> {
  first(): E | undefined
  add(ending: E): void
  /** @param ending one that was added */
  remove(ending: E): void
  readonly size: number
}

/** A binary heap in which each knows its place, so that none has to be searched for. */
export function createEndingQueue<E extends Ending>(): EndingQueue<E> {
  const heap: E[] = []

  function put(ending: E, place: number) {
    heap[place] = ending
    ending.place = place
  }

  function rise(ending: E, from: number) {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const parent = heap[above] as E
      if (isBefore(parent, ending)) break
      put(parent, place)
      place = above
    }
    put(ending, place)
  }

  function sink(ending: E, from: number) {
    let place = from
    for (;;) {
      const left = 2 * place + 1
      if (left >= heap.length) break
      const right = left + 1
      const below = right < heap.length && isBefore(heap[right] as E, heap[left] as E) ? right : left
      const child = heap[below] as E
      if (isBefore(ending, child)) break
      put(child, place)
      place = below
    }
    put(ending, place)
  }

  return {
    first: () => heap[0],
    add(ending) {
      rise(ending, heap.length)
    },
    remove(ending) {
      const { place } = ending
      const last = heap.pop() as E
      if (last === ending) return
      // The last one fills the gap, and may belong above or below it.
      rise(last, place)
      sink(last, last.place)
    },
    get size() {
      return heap.length
    }
  }
}

function isBefore(one: Ending, other: Ending): boolean {
  return one.until === other.until ? one.order < other.order : one.until < other.until
}
