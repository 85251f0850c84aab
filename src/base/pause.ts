import { setTimeout as wait } from 'node:timers/promises'

/** Wait, and keep the process alive meanwhile; resolves early when it is called off. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => {})
}
