import type { StatusTone } from '../terminal/style.ts'

const toneOfStatus: Readonly<Record<string, StatusTone>> = {
  active: 'good',
  ready: 'good',
  succeeded: 'good',
  success: 'good',
  pending: 'warning',
  running: 'warning',
  chunking: 'warning',
  embedding: 'warning',
  writing: 'warning',
  replaced: 'warning',
  draft: 'warning',
  deprecated: 'warning',
  failed: 'bad',
  revoked: 'bad',
  expired: 'bad',
}

/** Returns the color of a status: green if it is final and works, yellow if it will change, red if it failed. */
export function statusTone(status: unknown): StatusTone | undefined {
  return toneOfStatus[String(status)]
}
