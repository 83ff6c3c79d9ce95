// Compiles TypeScript as a user of the package does.
import { join } from 'node:path'
import { readText, repository } from './repository.js'
import { runCommand } from './run-command.js'

/** Type-checks files of `folder` with `strict` and writes no output. */
export async function compile(folder: string, files: readonly string[], settings = ['--module', 'nodenext']) {
  const compiler = join(repository, 'node_modules/typescript/bin/tsc')
  const options = ['--noEmit', '--strict', '--target', 'es2023', '--types', 'node', ...settings]
  const { status, stdout } = await runCommand([process.execPath, compiler, ...options, ...files], { cwd: folder })
  return { status, output: stdout }
}

/**
 * A program that compiles only if the types of the package are right. `@ts-expect-error` is an error if the next line
 * compiles, so the program also fails when a type has become `any`.
 */
export const programThatUsesTypes = readText('test/helpers/programs/uses-types.mts')

/** A CommonJS module that imports the package in the way that compiles with every setting of `module`. */
export const commonJsProgram = readText('test/helpers/programs/common-js.cts')
