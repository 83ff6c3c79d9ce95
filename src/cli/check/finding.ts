export type Status = 'ok' | 'warning' | 'failed'

/** One result of a check. */
export interface Finding {
  /** The name of the check. Scripts may rely on it. */
  readonly check: string
  readonly status: Status
  /** Whole sentences, without a secret and without the provider's own text. */
  readonly message: string
  /** Advice on what to do. */
  readonly next?: string
}

/** Returns functions that create the findings of `check`, one for each status. */
export function findingsFor(check: string) {
  return {
    ok: (message: string): Finding => ({ check, status: 'ok', message }),
    warning: (message: string, next: string): Finding => ({ check, status: 'warning', message, next }),
    failed: (message: string, next: string): Finding => ({ check, status: 'failed', message, next })
  }
}
