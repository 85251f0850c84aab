/** What asks a process to end: Ctrl-C, whoever has started it, and a terminal that is closed. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
