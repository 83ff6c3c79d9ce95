import { readFileSync } from 'node:fs'

const SHELL = /^-?(sh|ash|dash|bash|zsh|ksh|busybox)$/

/**
 * Returns a function that tells if the process that started this one has ended. npm starts its programs through a shell. If
 * npm is killed, this shell survives, so the parent of the shell is watched, too. Only Linux tells the parent of another
 * process.
 */
export function watchParents(): () => boolean {
  const { ppid } = process
  const parent = lookUp(ppid)
  const watched = parent && SHELL.test(parent.name) ? parent.ppid : undefined
  // The system gives a process without a parent to another process, so the id of the parent changes.
  return () => process.ppid !== ppid || (watched !== undefined && lookUp(ppid)?.ppid !== watched)
}

/** Returns the name and the parent of a process, or undefined if the system does not tell them (proc_pid_stat(5)). */
function lookUp(pid: number): { readonly name: string; readonly ppid: number } | undefined {
  try {
    const [, name = '', ppid] = /^\d+ \((.*)\) \S (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
    return { name, ppid: Number(ppid) }
  } catch {
    return undefined
  }
}
