import type { accessTools } from '../contract/access-tools.ts'
import type { audit } from '../contract/audit.ts'
import type { policy } from '../contract/policy.ts'
import type { principals } from '../contract/principals.ts'
import type { RowStore } from '../storage/rows.ts'
import type { AuditRecords } from './audit-records.ts'
import type { Caller, Handlers } from './caller.ts'
import { CallerQueue } from './caller-queue.ts'
import type { DecisionRecords } from './decisions/decision-records.ts'
import type { AccessTools } from './policy/access-tools.ts'
import { previewPolicy } from './policy/preview.ts'
import type { Principals } from './principals.ts'
import { requireWorkspace } from './require-workspace.ts'

export function auditHandlers(records: AuditRecords, decisions: DecisionRecords): Handlers<typeof audit> {
  return {
    list: async ({ params: { workspaceId }, query }, caller) =>
      caller.follows
        ? { status: 200, events: await records.follow(workspaceId, query, caller.follows.after, caller.auth) }
        : { status: 200, body: await records.list(workspaceId, query, caller) },
    decisions: async ({ params: { workspaceId }, query }, caller) => ({
      status: 200,
      body: await decisions.list(workspaceId, query, caller),
    }),
    listAll: async ({ query }, caller) =>
      caller.follows
        ? { status: 200, events: await records.follow(null, query, caller.follows.after, caller.auth) }
        : { status: 200, body: await records.list(null, query, caller) },
  }
}

export function principalHandlers(workspacePrincipals: Principals): Handlers<typeof principals> {
  return {
    list: async ({ params, query }) => ({
      status: 200,
      body: await workspacePrincipals.list(params.workspaceId, query),
    }),
    create: async ({ params, body }, caller) => ({
      status: 201,
      body: await workspacePrincipals.create(params.workspaceId, body, caller),
    }),
    show: async ({ params }) => ({ status: 200, body: await workspacePrincipals.get(params) }),
    update: async ({ params, body }, caller) => ({
      status: 200,
      body: await workspacePrincipals.update(params, body, caller),
    }),
    delete: async ({ params }, caller) => {
      await workspacePrincipals.delete(params, caller)
      return { status: 204, body: undefined }
    },
  }
}

export function policyHandlers(
  rows: RowStore,
  principals: Principals,
  decisions: DecisionRecords,
): Handlers<typeof policy> {
  return {
    preview: async ({ params: { workspaceId }, body }) => {
      await requireWorkspace(rows, workspaceId)
      const { principalId } = body
      const acting =
        principalId === undefined ? undefined : await principals.actingPrincipal({ workspaceId, principalId })
      return { status: 200, body: previewPolicy(body, acting) }
    },
    audit: async ({ params: { workspaceId }, query }, caller) => ({
      status: 200,
      body: { items: await decisions.newest(workspaceId, query, caller), nextCursor: null },
    }),
  }
}

/** Maximum number of questions about all documents that are answered at the same time. Each needs up to about 30 MB. */
const questionsAtOnce = 2

export function accessToolHandlers(tools: AccessTools): Handlers<typeof accessTools> {
  const queue = new CallerQueue(questionsAtOnce)
  const inTurn = async <Body>(
    workspaceId: string,
    caller: Pick<Caller, 'auth' | 'client' | 'signal' | 'reauthorize'>,
    answer: () => Promise<Body>,
  ) => ({ status: 200 as const, body: await queue.runAuthorized(caller, workspaceId, answer) })
  return {
    explain: async input => ({ status: 200, body: await tools.explain(input) }),
    viewers: (input, caller) =>
      inTurn(input.params.workspaceId, caller, () => tools.viewers(input, caller.signal)),
    documents: (input, caller) =>
      inTurn(input.params.workspaceId, caller, () => tools.documents(input, caller.signal)),
    counts: (input, caller) =>
      inTurn(input.params.workspaceId, caller, () => tools.counts(input, caller.signal)),
    diff: (input, caller) => inTurn(input.params.workspaceId, caller, () => tools.diff(input, caller.signal)),
  }
}
