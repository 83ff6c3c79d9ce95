// What the lab gives to a program, and what a program tells the lab.
import type { Page } from 'playwright-core'
import type { Teardown } from '../../helpers/scope.js'

/** A program that is run through the real server. To add one, write a file with one and list it in main.ts. */
export interface Program {
  /** The name for `--only`. */
  readonly name: string
  /** npm packages with exact versions, such as `vite@8.3.8`. They are installed into a cache folder, never into the project. */
  readonly packages: readonly string[]
  /** Runs the program and checks what it does. What it starts is ended by `lab.teardown`. */
  run(lab: Lab): Promise<void>
}

export interface Lab extends Teardown {
  /** Compares two values. A difference fails the lab, and the program runs on. */
  check(what: string, actual: unknown, expected: unknown): void
  /** Prints a line whether or not a check fails. */
  note(line: string): void
  /** The folder with the installed packages in `node_modules`. */
  readonly folder: string
  /** Loads an installed package into this process. */
  load<Module>(name: string): Module
  /** Creates a folder with these files, next to the installed packages and to this package as npm installs it. */
  application(files: Readonly<Record<string, string>>): Promise<string>
  /** Opens a page in a Chromium with empty storage. Paths are opened at `site`. */
  newPage(site?: string): Promise<Page>
}
