import { errorCode } from '../support/error-code.js'
import { RunError } from './errors.js'
import type { Output } from './terminal.js'

/** Records the first write error of the output, so that `flush` can report it. */
export function watchOutput(output: Output): { flush(): Promise<void> } {
  let failure: Error | undefined
  output.on('error', error => {
    // A reader such as `head` may close the pipe early. That is not a failure.
    if (errorCode(error) !== 'EPIPE') failure ??= error
  })
  return {
    /** Waits until all output is written. Throws RunError if some of it was lost, for example on a full disk. */
    async flush() {
      await new Promise<void>(resolve => output.write('', () => resolve()))
      if (failure === undefined) return
      throw new RunError(`The output could not be written: ${errorCode(failure) ?? failure.message}.`, {
        cause: failure
      })
    }
  }
}
