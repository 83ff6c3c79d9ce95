export type Status = 'ok' | 'warning' | 'failed'

/** One thing that was looked at, and how it stands. */
export interface Finding {
  /** What was looked at; scripts may go by it. */
  readonly check: string
  readonly status: Status
  /** Whole sentences, without a secret and without the provider's own text. */
  readonly message: string
  /** What to do about it. */
  readonly next?: string
}

/** Ways to say how `check` stands. */
export function about(check: string) {
  return {
    ok: (message: string): Finding => ({ check, status: 'ok', message }),
    warning: (message: string, next: string): Finding => ({ check, status: 'warning', message, next }),
    failed: (message: string, next: string): Finding => ({ check, status: 'failed', message, next })
  }
}
