import { z } from 'zod'
import { needs } from './access.ts'
import { recordedCaller } from './audit-record.ts'
import { boundedText, filter, isoTimestamp, principalIdFilter } from './fields.ts'
import { limits } from './limits.ts'
import { limitParameter } from './page.ts'
import { route } from './route.ts'

export const policyDecisions = ['allow', 'deny', 'filter'] as const

/** A policy decision in the policy audit. */
export const PolicyDecision = z
  .object({
    workspaceId: z.uuid(),
    auditDay: z.iso.date(),
    ts: isoTimestamp,
    decisionId: z.uuid(),
    principalId: z.string().nullable(),
    viewedBy: recordedCaller.optional().meta({
      description:
        'caller that viewed the workspace as this principal, with `x-view-as-principal`; absent if the principal itself was the caller',
    }),
    knowledgeBaseId: z.string(),
    resourceId: z.string().meta({ description: 'ID of the document, or `*` for all documents' }),
    action: z.enum(['list', 'get', 'search', 'ingest', 'update', 'delete']),
    decision: z.enum(policyDecisions),
    reason: z.string(),
    compiledFilterJson: z.string().nullable(),
  })
  .meta({ id: 'PolicyDecision' })
export type PolicyDecision = z.output<typeof PolicyDecision>

/** Mistake in a policy whose syntax is valid. */
const PolicyIssue = z
  .object({
    code: z.enum([
      'row_to_row_comparison',
      'constant_only_comparison',
      'row_in_value_position',
      'in_subject_not_row',
      'any_subject_is_row',
    ]),
    message: z.string(),
    hint: z.string().optional(),
  })
  .meta({ id: 'PolicyIssue' })
export type PolicyIssue = z.output<typeof PolicyIssue>

const PolicyPreview = z
  .object({
    ok: z.boolean(),
    parseError: z.string().nullable(),
    parseHint: z
      .string()
      .optional()
      .meta({ description: 'suggestion to correct the error in `parseError`; absent without a suggestion' }),
    issues: z.array(PolicyIssue),
    compiledFilter: filter.nullable(),
    principalId: z.string().nullable(),
  })
  .meta({ id: 'PolicyPreview' })
export type PolicyPreview = z.output<typeof PolicyPreview>

const PreviewRequest = z.strictObject({
  dsl: boundedText(limits.policyChars),
  principalId: boundedText(limits.principalIdChars)
    .optional()
    .meta({ description: 'principal to preview the policy for; an unknown principal has no attributes' }),
})
export type PreviewRequest = z.output<typeof PreviewRequest>

const DecisionQuery = z.object({
  principalId: principalIdFilter.optional(),
  knowledgeBaseId: z.uuid().optional(),
  auditDay: z.iso.date().optional(),
  limit: limitParameter(limits.policyAuditMax, limits.policyAuditDefault),
})
export type DecisionQuery = z.output<typeof DecisionQuery>

export const policy = {
  preview: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/policy/compile-preview',
    summary: 'Preview a policy',
    access: needs('manage:access'),
    body: { kind: 'json', schema: PreviewRequest, mode: 'strict', limitBytes: limits.jsonBodyBytes },
    replies: { 200: PolicyPreview },
    errors: ['workspace_not_found'],
  }),
  audit: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/policy/audit',
    summary: 'List policy decisions',
    access: needs('manage:access'),
    query: DecisionQuery,
    replies: { 200: z.object({ items: z.array(PolicyDecision), nextCursor: z.null() }) },
    errors: ['workspace_not_found'],
  }),
}
