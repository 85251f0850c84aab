import { z } from 'zod'
import { needs } from './access.ts'
import { boundedText, isoTimestamp, timestampInput } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'
import { roles } from './scopes.ts'

const principalId = boundedText(limits.principalIdChars).meta({
  description: 'ID of the principal; a principal that the workspace does not contain has no attributes',
})
const at = timestampInput.optional().meta({
  description: 'past time for which to answer, in UTC; by default, now',
})
const rule = z.enum(['off', 'builtIn', 'policy', 'proposed']).meta({
  description:
    'rule that decides: `off` if row-level access is off and everyone sees everything, `builtIn` for the built-in policy, `policy` for the policy of the knowledge base, `proposed` for the policy in the request',
})

const NamedPrincipal = z.object({
  principalId: z.string(),
  label: z.string().nullable(),
  role: z
    .enum(roles)
    .nullable()
    .meta({ description: 'role in the workspace; null if the workspace does not contain the principal' }),
})

/** A document in the answer of an access tool. */
const ToolDocument = z
  .object({
    documentId: z.uuid(),
    sourceFilename: z.string().nullable(),
    ownerPrincipalId: z.string().nullable(),
    visibleTo: z
      .array(z.string())
      .nullable()
      .meta({ description: `the first ${limits.shownItems} entries of \`visibleTo\`; null if it is null` }),
    visibleToTotal: z
      .int()
      .min(1)
      .nullable()
      .meta({ description: 'number of entries of `visibleTo`; null if it is null' }),
  })
  .meta({ id: 'ToolDocument' })
export type ToolDocument = z.output<typeof ToolDocument>

const AccessReason = z
  .object({
    text: z.string().meta({ description: 'condition, as it is written in the policy' }),
    position: z.int().min(1).meta({ description: 'position of the condition in the policy, counted from 1' }),
    result: z
      .enum(['true', 'false', 'unknown'])
      .meta({ description: '`unknown` if the principal does not have an attribute' }),
    negated: z.boolean().meta({
      description: 'true if the policy negates the condition, which lets documents in when it is false',
    }),
    values: z
      .array(
        z.object({
          name: z.string().meta({
            description: 'column, `$principal.NAME`, or `current_principal_id()`',
          }),
          value: z.unknown().meta({
            description: `value that was compared; null if it is missing. At most ${limits.shownValueChars} characters or ${limits.shownItems} list items, and \`{}\` for an object`,
          }),
          cut: z.boolean().meta({ description: 'true if `value` is not the whole value' }),
          missing: z.boolean().meta({
            description: 'true if the document has no such column, or the principal no such attribute',
          }),
        }),
      )
      .meta({ description: 'values that the condition compares, except those in its text' }),
  })
  .meta({ id: 'AccessReason' })
export type AccessReason = z.output<typeof AccessReason>

const AccessExplanation = z
  .object({
    visible: z.boolean().meta({ description: 'true if the principal sees the document' }),
    rule,
    policy: z.string().nullable().meta({ description: 'text of the policy; null if `rule` is `off`' }),
    principal: NamedPrincipal.extend({
      attributes: z.record(z.string(), z.string()).meta({ description: 'attributes that policies read' }),
    }).meta({ description: 'the principal' }),
    document: ToolDocument.meta({ description: 'the document' }),
    knowledgeBaseId: z.uuid(),
    reasons: z.array(AccessReason).meta({
      description: `conditions that decide: those that make the policy true, or those of which some would have to change; at most the first ${limits.policyReasonsMax}`,
    }),
    reasonsTotal: z.int().min(0).meta({ description: 'number of all conditions that decide' }),
    at: isoTimestamp.nullable().meta({ description: 'time of the answer; null for now' }),
  })
  .meta({ id: 'AccessExplanation' })
export type AccessExplanation = z.output<typeof AccessExplanation>

const Viewer = NamedPrincipal.extend({
  because: z.array(z.string()).meta({ description: 'conditions of the policy that let the principal in' }),
}).meta({ id: 'Viewer' })
export type Viewer = z.output<typeof Viewer>

const VisibleCount = z
  .object({
    knowledgeBaseId: z.uuid(),
    name: z.string(),
    rule,
    visible: z.int().min(0).meta({ description: 'number of documents that the principal sees' }),
    total: z.int().min(0).meta({ description: 'number of documents' }),
  })
  .meta({ id: 'VisibleCount' })
export type VisibleCount = z.output<typeof VisibleCount>

const ChangedDocuments = z.object({
  total: z.int().min(0).meta({ description: 'number of documents' }),
  documents: z.array(ToolDocument).meta({ description: 'the first of these documents' }),
})
const change = {
  gains: ChangedDocuments.meta({ description: 'documents that would become visible' }),
  loses: ChangedDocuments.meta({ description: 'documents that would become hidden' }),
}

const PolicyChange = NamedPrincipal.extend(change).meta({ id: 'PolicyChange' })
export type PolicyChange = z.output<typeof PolicyChange>

const json = { kind: 'json', mode: 'strict', limitBytes: limits.jsonBodyBytes } as const
const notFoundErrors = ['workspace_not_found', 'knowledge_base_not_found'] as const
const documentKey = { knowledgeBaseId: z.uuid(), documentId: z.uuid() }
const policyDsl = boundedText(limits.policyChars)

/** Routes that answer who can see what. They answer about all documents, whatever the caller itself can see. */
export const accessTools = {
  explain: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/policy/explain',
    summary: 'Explain an access decision',
    description:
      'Returns if a principal sees a document, and which conditions of the policy decide it, with the values that they compare.',
    access: needs('manage:access'),
    body: {
      ...json,
      schema: z.strictObject({
        principalId,
        ...documentKey,
        policyDsl: policyDsl.optional().meta({
          description: 'policy to explain instead of the current one; it is not saved',
        }),
        at,
      }),
    },
    replies: { 200: AccessExplanation },
    errors: [...notFoundErrors, 'document_not_found'],
  }),
  viewers: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/policy/viewers',
    summary: 'List the principals that see a document',
    description:
      'Lists those principals of the workspace, principals of its API keys, and principals that the document names that see a document, sorted by ID. `everyoneElse` answers for all other principals.',
    access: needs('manage:access'),
    query: pageQuery,
    body: { ...json, schema: z.strictObject({ ...documentKey, at }) },
    replies: {
      200: pageOfItems(Viewer).extend({
        rule,
        policy: z.string().nullable().meta({ description: 'text of the policy; null if `rule` is `off`' }),
        everyoneElse: z.boolean().meta({
          description: 'true if a principal without attributes that is not named anywhere sees the document',
        }),
      }),
    },
    errors: [...notFoundErrors, 'document_not_found', 'invalid_cursor'],
  }),
  documents: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/policy/documents',
    summary: 'List the documents that a principal sees',
    description:
      'Lists the documents of a knowledge base that a principal sees, oldest first. A page can be empty, even if more pages follow.',
    access: needs('manage:access'),
    query: pageQuery,
    body: { ...json, schema: z.strictObject({ principalId, knowledgeBaseId: z.uuid(), at }) },
    replies: { 200: pageOfItems(ToolDocument) },
    errors: [...notFoundErrors, 'invalid_cursor'],
  }),
  counts: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/policy/counts',
    summary: 'Count the documents that a principal sees',
    description:
      'Returns for each knowledge base how many of its documents a principal sees. Takes time proportional to the number of documents, so a page can end early.',
    access: needs('manage:access'),
    query: pageQuery,
    body: { ...json, schema: z.strictObject({ principalId, at }) },
    replies: { 200: pageOfItems(VisibleCount) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  diff: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/policy/diff',
    summary: 'Compare a policy with the current one',
    description:
      'Returns which principals would gain or lose documents if a policy were saved and enabled. Nothing is saved. Examines at most `limit` principals per page, sorted by ID, and fewer if the policies or the lists of documents are long. Returns only those that would gain or lose documents, so a page can be empty. Compares the policies as if row-level access were on.',
    access: needs('manage:access'),
    query: pageQuery,
    body: {
      ...json,
      schema: z.strictObject({
        knowledgeBaseId: z.uuid(),
        policyDsl: policyDsl.nullable().meta({ description: 'new policy; null for the built-in policy' }),
        documentsListed: z
          .int()
          .min(0)
          .max(limits.policyDiffDocumentsMax)
          .default(limits.policyDiffDocumentsDefault)
          .meta({ description: 'maximum number of documents to list per principal, gained and lost' }),
      }),
    },
    replies: {
      200: pageOfItems(PolicyChange).extend({
        everyoneElse: z
          .object(change)
          .meta({ description: 'changes for a principal without attributes that is not named anywhere' }),
        rlacEnabled: z.boolean().meta({
          description: 'false if row-level access is off, so that no policy has an effect',
        }),
      }),
    },
    errors: [...notFoundErrors, 'invalid_cursor'],
  }),
}
