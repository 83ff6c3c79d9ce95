// Runs commands beside other tests.
import { type ExecFileOptions, execFile } from 'node:child_process'

/**
 * Runs a command to its end. Unlike spawnSync, it does not block this process, in which time limits of other tests would pass.
 */
export function runCommand([file = '', ...args]: readonly string[], options: ExecFileOptions = {}) {
  return new Promise<{ status: unknown; stdout: string; stderr: string }>(resolve => {
    execFile(file, args, { ...options, encoding: 'utf8' }, (error, stdout, stderr) =>
      resolve({ status: error ? error.code : 0, stdout, stderr })
    )
  })
}
