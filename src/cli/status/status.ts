import type { Client } from '../../client/client.ts'
import { agents } from '../../contract/agents.ts'
import type { Me } from '../../contract/auth.ts'
import { documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { type Job, jobs } from '../../contract/jobs.ts'
import { kb } from '../../contract/knowledge.ts'
import { runtimeRoutes } from '../../contract/runtime-routes.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { ResolvedRuntime } from '../connection/resolve-runtime.ts'
import type { Session } from '../connection/session.ts'
import type { StoredTokens } from '../credentials/token-store.ts'
import { UsageError } from '../errors.ts'
import { type ResolveContext, resolveWorkspace } from '../find/resolve.ts'
import { identifyCaller } from '../sign-in/identity.ts'
import { countItems } from '../terminal/take-first.ts'

/**
 * Maximum number of documents or jobs to count. It is low because `wb status` can repeat the count every two
 * seconds.
 */
const countMax = 2_000
/** Maximum number of knowledge bases whose documents are counted. */
const basesMax = 20

/** State of a runtime, and of the selected workspace. */
export interface Status {
  readonly runtime: {
    readonly kind: ResolvedRuntime['kind']
    /** Null if the runtime is in this process. */
    readonly url: string | null
    /** Null if the runtime is at the address of a flag, variable or profile. */
    readonly dataDir: string | null
    readonly version: string
    readonly workspaces: number
  }
  readonly workspace: Pick<Workspace, 'workspaceId' | 'name' | 'kind'> | null
  /** Null if no workspace is selected. */
  readonly counts: Counts | null
  readonly jobs: Readonly<Record<Job['status'], number>> | null
  /** Null for a caller without an identity. */
  readonly you: Me | null
}

export interface Counts {
  readonly knowledgeBases: number
  readonly documents: number
  readonly chunks: number
  /** True if all documents and chunks were counted; otherwise the numbers are lower bounds. */
  readonly complete: boolean
  readonly agents: number
}

/** A status, and details for terminal output only. */
export interface StatusView {
  readonly status: Status
  /** Reason why no workspace is selected, and commands to try. */
  readonly noWorkspace: Pick<UsageError, 'message' | 'next'> | undefined
  readonly tokens: StoredTokens | undefined
}

/**
 * Reads the status from the runtime.
 *
 * @throws WbError      when the runtime rejects a request
 * @throws Unreachable  when the runtime cannot be reached
 */
export async function readStatus(session: Session, context: ResolveContext): Promise<StatusView> {
  const { client, profile } = session
  const [{ kind, baseUrl }, ready, { version }, you] = await Promise.all([
    session.runtime(),
    client.call(runtimeRoutes.ready, {}),
    client.call(runtimeRoutes.version, {}),
    fetchCaller(session),
  ])
  const workspaceOrReason = await resolveWorkspaceOrReason(context)
  const workspace = 'name' in workspaceOrReason ? workspaceOrReason : undefined
  const [counts, jobCounts] = workspace
    ? await Promise.all([countContents(client, workspace), countJobs(client, workspace)])
    : [null, null]
  const isInProcess = kind === 'process'
  return {
    status: {
      runtime: {
        kind,
        url: isInProcess ? null : baseUrl,
        dataDir: kind === 'url' ? null : profile.dataDir,
        version,
        workspaces: ready.workspaces,
      },
      workspace: workspace
        ? { workspaceId: workspace.workspaceId, name: workspace.name, kind: workspace.kind }
        : null,
      counts,
      jobs: jobCounts,
      you,
    },
    noWorkspace: 'message' in workspaceOrReason ? workspaceOrReason : undefined,
    tokens: await session.tokenStore?.tokens(),
  }
}

/**
 * Returns the caller; null if no credential is sent. If the runtime requires one, a later call fails.
 *
 * @throws WbError unauthorized  when the credential is not accepted
 */
async function fetchCaller(session: Session): Promise<Me | null> {
  const caller = await identifyCaller(session)
  if (caller.kind === 'rejected' && session.credential.used) throw caller.error
  return caller.kind === 'identified' ? caller.me : null
}

/** Resolves the workspace without a prompt, or returns the reason why none is selected. */
async function resolveWorkspaceOrReason(
  context: ResolveContext,
): Promise<Workspace | Pick<UsageError, 'message' | 'next'>> {
  try {
    return await resolveWorkspace({ ...context, promptForChoice: undefined })
  } catch (error) {
    if (context.profile.workspace !== undefined) throw error
    if (error instanceof UsageError) return error
    if (!(error instanceof WbError) || error.code !== 'workspace_not_found') throw error
    const { next } = error.facts
    return { message: error.message, next: Array.isArray(next) ? next.map(String) : [] }
  }
}

async function countContents(client: Client, { workspaceId }: Workspace): Promise<Counts> {
  const params = { workspaceId }
  const bases: string[] = []
  for await (const { knowledgeBaseId } of client.items(kb.list, { params })) bases.push(knowledgeBaseId)
  const [contents, agentCount] = await Promise.all([
    countDocumentsAndChunks(client, workspaceId, bases),
    countItems(client.items(agents.list, { params })),
  ])
  return { knowledgeBases: bases.length, ...contents, agents: agentCount }
}

async function countDocumentsAndChunks(
  client: Client,
  workspaceId: string,
  bases: readonly string[],
): Promise<Pick<Counts, 'documents' | 'chunks' | 'complete'>> {
  const counts = { documents: 0, chunks: 0 }
  for (const knowledgeBaseId of bases.slice(0, basesMax)) {
    const params = { workspaceId, knowledgeBaseId }
    for await (const { chunkTotal } of client.items(documents.list, { params })) {
      if (counts.documents === countMax) return { ...counts, complete: false }
      counts.documents++
      counts.chunks += chunkTotal ?? 0
    }
  }
  return { ...counts, complete: bases.length <= basesMax }
}

async function countJobs(client: Client, { workspaceId }: Workspace): Promise<Record<Job['status'], number>> {
  const byStatus = { pending: 0, running: 0, succeeded: 0, failed: 0 }
  let count = 0
  for await (const { status } of client.items(jobs.list, { params: { workspaceId } })) {
    if (count++ === countMax) break
    byStatus[status]++
  }
  return byStatus
}
