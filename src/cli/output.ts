import { errorCode } from '../config/read-file.js'
import { RunError } from './errors.js'
import type { Output } from './terminal.js'

/** Notes from now on whether the output was taken. */
export function watchOutput(output: Output): { taken(): Promise<void> } {
  let failure: Error | undefined
  output.on('error', error => {
    // A reader that has seen enough (`| head`) goes away, and that is no failure.
    if (errorCode(error) !== 'EPIPE') failure ??= error
  })
  return {
    /** Waits until all that was written is gone, and throws if some of it got lost: on a full disk, say. */
    async taken() {
      await new Promise<void>(resolve => output.write('', () => resolve()))
      if (failure === undefined) return
      throw new RunError(`The output could not be written: ${errorCode(failure) ?? failure.message}.`, {
        cause: failure
      })
    }
  }
}
