import { type Clock, timestamp } from '../../base/clock.ts'
import { compareCodePoints } from '../../base/compare-code-points.ts'
import { WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { Principal } from '../../contract/principals.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { Pager } from '../../storage/cursor.ts'
import type { RowStore, RowTable } from '../../storage/rows.ts'
import {
  type AccessVersionRow,
  type AccessVersionStates,
  type DocumentRow,
  tables,
} from '../../storage/tables.ts'
import { requireWorkspace } from '../require-workspace.ts'
import { documentTarget } from './version-write.ts'

/** A principal of a workspace, now or at a time in the past. */
export type RecordedPrincipal = Pick<Principal, 'principalId' | 'label' | 'role' | 'attributes'>

/** The data that access decisions in a workspace depend on, now or at a time in the past. */
export interface AccessState {
  /** Null for now. */
  readonly at: string | null
  readonly rlacEnabled: boolean
  /** Returns a knowledge base with its policy at the time; undefined if it did not exist. */
  knowledgeBase(base: KnowledgeBase): Promise<KnowledgeBase | undefined>
  /** Returns undefined if the workspace did not contain the principal. */
  principal(principalId: string): Promise<RecordedPrincipal | undefined>
  /** Returns all principals of the workspace, sorted by ID in code point order. */
  principals(): Promise<RecordedPrincipal[]>
  /** Returns a document in which the fields that policies can read have their values at the time. */
  document(document: DocumentRow): Promise<DocumentRow>
}

/**
 * Returns the name of the setting with the time since which access versions are complete: those of all workspaces, or those
 * of one workspace. Without a setting, all have been recorded. The later one of both times applies.
 */
export function versionsStartSetting(workspaceId?: string): string {
  return workspaceId === undefined ? 'access-versions-start' : `access-versions-start/${workspaceId}`
}

const sliceSize = 500

/**
 * Reads the data that access decisions depended on at a time in the past. A version row contains the state before a change,
 * and the time of the change. The state at a given time is in the first version of a later change. Without such a version,
 * it is the current row.
 */
export class AccessHistory {
  constructor(private readonly deps: { rows: RowStore; pager: Pager; clock: Clock }) {}

  /**
   * Returns the data that access decisions depend on.
   *
   * @param at  timestamp in the past; undefined for now
   * @throws workspace_not_found
   * @throws validation_error  the time is in the future, or changes before it are no longer known
   */
  async stateAt(workspaceId: string, at: string | undefined): Promise<AccessState> {
    const workspace = await requireWorkspace(this.deps.rows, workspaceId)
    if (at === undefined) return this.#current(workspace)
    await this.#requireRecorded(workspaceId, at)
    const { rlacEnabled } = (await this.#version('workspace', workspaceId, workspaceId, at)) ?? workspace
    return {
      at,
      rlacEnabled,
      knowledgeBase: async base => {
        const { knowledgeBaseId } = base
        const then = { ...base, ...(await this.#version('knowledgeBase', workspaceId, knowledgeBaseId, at)) }
        return then.createdAt > at ? undefined : then
      },
      principal: async principalId => {
        const state =
          (await this.#version('principal', workspaceId, principalId, at)) ??
          (await this.deps.rows.get(tables.principals, [workspaceId, principalId]))?.row
        return state && toRecordedPrincipal({ principalId, ...state }, at)
      },
      principals: () => this.#principalsAt(workspaceId, at),
      document: async document => {
        const target = documentTarget(document.knowledgeBaseId, document.documentId)
        // Older versions belong to a deleted document with the same ID.
        const since = document.createdAt !== undefined && document.createdAt > at ? document.createdAt : at
        const [metadata, visibility, fields] = await Promise.all([
          this.#version('documentMetadata', workspaceId, target, since),
          this.#version('documentVisibility', workspaceId, target, since),
          this.#version('document', workspaceId, target, since),
        ])
        return { ...document, ...metadata, ...visibility, ...fields }
      },
    }
  }

  #current({ workspaceId, rlacEnabled }: Workspace): AccessState {
    const { rows } = this.deps
    return {
      at: null,
      rlacEnabled,
      knowledgeBase: async base => base,
      principal: async principalId => (await rows.get(tables.principals, [workspaceId, principalId]))?.row,
      principals: () => this.#currentPrincipals(workspaceId),
      document: async document => document,
    }
  }

  async #requireRecorded(workspaceId: string, at: string): Promise<void> {
    if (at > timestamp(this.deps.clock))
      throw new WbError('validation_error', 'at: must not be in the future')
    const names = [versionsStartSetting(), versionsStartSetting(workspaceId)]
    const settings = await Promise.all(names.map(name => this.deps.rows.get(tables.settings, [name])))
    const start = settings
      .flatMap(stored => stored?.row.value ?? [])
      .sort()
      .at(-1)
    if (start === undefined || at >= start) return
    throw new WbError('validation_error', `at: the earliest recorded time is ${start}`, {
      hint: 'Use a later time. Old versions are deleted with old audit records.',
    })
  }

  /** Returns the state at a time; undefined if it has not changed since then. */
  async #version<Kind extends keyof AccessVersionStates>(
    kind: Kind,
    workspaceId: string,
    targetId: string,
    at: string,
  ): Promise<AccessVersionStates[Kind] | undefined> {
    const [stored] = await this.deps.rows.list(versionsOf(kind), {
      index: 'byTarget',
      prefix: [workspaceId, kind, targetId],
      after: [at, Number.MAX_SAFE_INTEGER],
      limit: 1,
    })
    return stored?.row.state
  }

  async #currentPrincipals(workspaceId: string): Promise<Principal[]> {
    const found: Principal[] = []
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    for await (const slice of this.deps.pager.slices(tables.principals, list))
      found.push(...slice.map(({ row }) => row))
    return found
  }

  async #principalsAt(workspaceId: string, at: string): Promise<RecordedPrincipal[]> {
    const states = new Map((await this.#currentPrincipals(workspaceId)).map(row => [row.principalId, row]))
    const changed = new Set<string>()
    let after = [at, Number.MAX_SAFE_INTEGER]
    for (;;) {
      const slice = await this.deps.rows.list(versionsOf('principal'), {
        index: 'byKind',
        prefix: [workspaceId, 'principal'],
        after,
        limit: sliceSize,
      })
      for (const { row } of slice) {
        if (changed.has(row.targetId)) continue
        changed.add(row.targetId)
        const { targetId: principalId, until: updatedAt } = row
        states.set(principalId, { workspaceId, principalId, updatedAt, ...row.state })
      }
      const last = slice.at(-1)
      if (!last || slice.length < sliceSize) break
      after = [last.row.until, last.ordinal]
    }
    return [...states.values()]
      .flatMap(state => toRecordedPrincipal(state, at) ?? [])
      .sort((a, b) => compareCodePoints(a.principalId, b.principalId))
  }
}

/** Returns the table of versions, for queries that select one kind. */
function versionsOf<Kind extends keyof AccessVersionStates>(_: Kind): RowTable<AccessVersionRow<Kind>> {
  return tables.accessVersions as unknown as RowTable<AccessVersionRow<Kind>>
}

function toRecordedPrincipal(
  state: RecordedPrincipal & Pick<Principal, 'createdAt'>,
  at: string,
): RecordedPrincipal | undefined {
  return state.createdAt > at ? undefined : state
}
