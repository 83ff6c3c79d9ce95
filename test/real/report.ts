// The output of a suite that runs outside of AVA.

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Counts results. The exit code is 1 if one of them has failed. */
export function createCounts() {
  const counts = { passed: 0, failed: 0 }
  return {
    add(isPassed: boolean) {
      counts[isPassed ? 'passed' : 'failed'] += 1
      if (!isPassed) process.exitCode = 1
    },
    print: () => print(`\n${counts.passed} passed, ${counts.failed} failed`)
  }
}

/** Prints the help if it was asked for, or an error with the help if there are unknown arguments. Returns true if it did so. */
export function endsWithHelp(help: string, args: readonly string[], unknown: readonly string[]): boolean {
  if (args.includes('--help')) process.stdout.write(help)
  else if (unknown.length > 0) {
    process.stderr.write(`Unknown: ${unknown.join(', ')}\n\n${help}`)
    process.exitCode = 2
  }
  return args.includes('--help') || unknown.length > 0
}
