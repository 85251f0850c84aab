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

/** Returns the tone of a status: `good` if it is final and works, `warning` if it will change, `bad` if it failed. */
export function statusTone(status: unknown): StatusTone | undefined {
  return toneOfStatus[String(status)]
}
