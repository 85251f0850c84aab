import type { audit } from '../contract/audit.ts'
import type { AuditTrail } from './audit.ts'
import type { Handlers } from './caller.ts'

export function auditHandlers(_trail: AuditTrail): Handlers<typeof audit> {
  const unwritten = () => {
    throw new Error('not written')
  }
  return { list: unwritten, listAll: unwritten }
}
