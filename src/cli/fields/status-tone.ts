import type { StatusTone } from '../terminal/style.ts'

const toneByStatus: Readonly<Record<string, StatusTone>> = {
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

/** Returns the color category of a status; undefined for unknown statuses. */
export function statusTone(status: unknown): StatusTone | undefined {
  return toneByStatus[String(status)]
}
