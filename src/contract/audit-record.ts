import { z } from 'zod'
import { isoTimestamp } from './fields.ts'

/**
 * Actions in the audit trail. Their names never change.
 *
 * @see docs/requirements.md#audit
 */
export const auditActions = [
  'api_key.create',
  'api_key.revoke',
  'api_key.rotate',
  'workspace.create',
  'workspace.update',
  'workspace.delete',
  'kb.create',
  'kb.update',
  'kb.delete',
  'kb.reindex',
  'kb.clear_query_log',
  'document.delete',
  'document.restore',
  'agent.create',
  'agent.delete',
  'job.claim',
  'mcp.invoke',
  'mcp.sign_in',
  'mcp.sign_out',
  'tool.invoke',
  'tool.decide',
  'auth.api_denied',
  'auth.bootstrap_use',
  'auth.csrf_rejected',
  'auth.login',
  'auth.logout',
  'auth.refresh',
  'auth.device.authorize',
  'auth.device.token',
  'auth.device.refresh',
  'principal.create',
  'principal.update',
  'principal.delete',
  'secret.release',
  'secret.withdraw',
  'setup.env',
  'setup.restart',
] as const
export type AuditAction = (typeof auditActions)[number]

/** All details that an audit record can contain. */
const auditDetails = z
  .strictObject({
    keyId: z.string(),
    knowledgeBaseId: z.string(),
    documentId: z.string(),
    agentId: z.string(),
    templateId: z.string(),
    entryId: z.string(),
    jobId: z.string(),
    jobKind: z.string(),
    toolName: z.string(),
    conversationId: z.string(),
    approvalId: z.string(),
    decision: z.string(),
    source: z.string(),
    mcpServerId: z.string(),
    scheme: z.string(),
    reason: z.string(),
    requiredScope: z.string(),
    label: z.string(),
    scopes: z.string().meta({ description: 'scopes of the key, separated by commas' }),
    principalId: z.string(),
    releaseId: z.string(),
    ref: z.string(),
    host: z.string(),
    user_code: z.string(),
    count: z.int(),
  })
  .partial()
export type AuditDetails = z.output<typeof auditDetails>

/** A caller, as recorded. The label is its name at that time. */
export const recordedCaller = z.object({
  type: z.enum(['apiKey', 'oidc', 'bootstrap', 'anonymous', 'system']),
  id: z.string().nullable(),
  label: z.string().nullable(),
})
export type RecordedCaller = z.output<typeof recordedCaller>

export const AuditRecord = z
  .object({
    auditId: z.uuid(),
    at: isoTimestamp,
    action: z.enum(auditActions),
    outcome: z.enum(['success', 'failure', 'denied']),
    requestId: z.string().nullable(),
    subject: recordedCaller
      .extend({
        viewAs: z.string().optional().meta({
          description: 'principal that the subject viewed the workspace as, from `x-view-as-principal`',
        }),
      })
      .nullable(),
    workspaceId: z.string().nullable(),
    details: auditDetails.nullable(),
  })
  .meta({ id: 'AuditRecord' })
export type AuditRecord = z.output<typeof AuditRecord>
