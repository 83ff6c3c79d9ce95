/** The findings of the checks. The text of a finding says what was found, and after ` Next: ` what to do. */
export interface Finding {
  readonly status: 'ok' | 'warning' | 'failed'
  /** Whole sentences, without a secret and without text from the provider. */
  readonly message: string
  /** Advice on what to do. */
  readonly next?: string
}

type FindingTag = (texts: TemplateStringsArray, ...values: readonly unknown[]) => Finding

function tagFor(status: Finding['status']): FindingTag {
  return function finding({ raw }, ...values) {
    const [message = '', next] = String.raw({ raw }, ...values).split(' Next: ')
    return { status, message, ...(next !== undefined && { next }) }
  }
}

/** The finding that a setting or an endpoint is right. */
export const ok = tagFor('ok')

/** A finding that the operator should know about, but that does not keep the server from working. */
export const warning = tagFor('warning')

/** A finding that keeps the server from working. It makes the exit code 1. */
export const failed = tagFor('failed')

/** A table of texts. Each key is a regular expression. */
export type Texts = Readonly<Record<string, string>>

/** Returns the text of the first row whose key matches the code. */
export function textFor(code: string, texts: Texts): string | undefined {
  return Object.entries(texts).find(([codes]) => new RegExp(codes).test(code))?.[1]
}
