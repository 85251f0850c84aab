import { setTimeout as wait } from 'node:timers/promises'

/** Waits, and keeps the process alive in the meantime. Resolves early when the signal fires. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => {})
}
