/** What asks a process to end: Ctrl-C, whoever has started it, and a terminal that is closed. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs work that may block this thread, such as reading a pipe or running jq. During the work, signals have their default
 * action and end the process, because listeners could not run. They are restored when the work ends or fails.
 */
export function withDefaultSignals<T>(work: () => T): T {
  const held = endingSignals.map(name => [name, process.rawListeners(name)] as const)
  for (const [name] of held) process.removeAllListeners(name)
  try {
    return work()
  } finally {
    for (const [name, listeners] of held)
      for (const listener of listeners) process.on(name, listener as NodeJS.SignalsListener)
  }
}
