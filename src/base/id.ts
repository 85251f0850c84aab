import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { monotonicFactory } from 'ulid'

/** A new resource id: UUID v4. */
export function newId(): string {
  return randomUUID()
}

const nextUlid = monotonicFactory()

/** A new request id: ULID, 26 characters, sorted by time. */
export function newRequestId(): string {
  return nextUlid()
}

/** `sizeBytes` random bytes in lower-case hex. */
export function randomHex(sizeBytes: number): string {
  return randomBytes(sizeBytes).toString('hex')
}

/** Lower-case hex SHA-256 of the UTF-8 bytes. */
export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex')
}
