import { rehearse } from '../access/audit.ts'
import type { Caller } from '../access/caller.ts'
import type { Subject } from '../access/subject.ts'
import { workspaceNotFound } from '../access/workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import type { Workspace, WorkspaceCreate, WorkspacePatch } from '../contract/workspaces.ts'
import { changeRow } from '../storage/change.ts'
import type { Page, Pager } from '../storage/cursor.ts'
import type { Outcome, RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { seedsOf } from './seeds.ts'

/** Removes one kind of thing that a workspace owns; run again after a failure it finishes the rest. */
export type PurgeStep = (workspace: Workspace) => Promise<void>

/** Each purge but the last was overtaken by somebody who went on making things. */
const purgesMax = 8
const ephemeralSlice = 200

/** Tables whose rows go with their workspace; its knowledge bases go before, with their collections. */
const owned = [
  tables.apiKeys,
  tables.documents,
  tables.messages,
  tables.conversations,
  tables.agents,
  tables.chunkingServices,
  tables.embeddingServices,
  tables.rerankingServices,
  tables.llmServices,
]

/** The tenants. */
export class Workspaces {
  constructor(
    private readonly parts: {
      rows: RowStore
      pager: Pager
      clock: Clock
      log: Log
      purge: readonly PurgeStep[]
    },
  ) {}

  /**
   * Workspaces in the caller's reach, by creation.
   *
   * @throws invalid_cursor
   */
  async list(query: PageQuery, subject: Subject | null): Promise<Page<Workspace>> {
    const { rows, pager } = this.parts
    const list = { index: 'byCreation', prefix: [] }
    const reach = subject?.workspaceScopes
    if (!reach) return pager.page(tables.workspaces, list, query)
    const found = await Promise.all([...new Set(reach)].map(id => rows.get(tables.workspaces, [id])))
    return pager.pageOf(
      tables.workspaces,
      list,
      found.filter(stored => stored !== undefined),
      query,
    )
  }

  /**
   * Create a workspace and what it starts with, in one unit.
   *
   * @throws conflict                     the id is taken
   * @throws workspace_name_conflict      the name is taken
   * @throws workspace_database_conflict  another workspace is bound to the same url and keyspace
   */
  async create(body: WorkspaceCreate, caller: Pick<Caller, 'record'>): Promise<Workspace> {
    const { rows, clock } = this.parts
    const now = timestamp(clock)
    const workspace: Workspace = {
      ...body,
      workspaceId: body.workspaceId ?? newId(),
      createdAt: now,
      updatedAt: now,
    }
    if (await this.isNameFree(workspace)) await this.refuseSharedDatabase(workspace)
    const outcome = await rows.atomic([
      { op: 'insert', table: tables.workspaces, row: workspace },
      ...seedsOf(workspace),
      caller.record({ label: workspace.name }, workspace.workspaceId),
    ])
    if (!outcome.ok) throw nameOrIdTaken(outcome, workspace)
    return workspace
  }

  /** @throws workspace_not_found */
  async get(workspaceId: string): Promise<Workspace> {
    const stored = await this.parts.rows.get(tables.workspaces, [workspaceId])
    if (!stored) throw workspaceNotFound(workspaceId)
    return stored.row
  }

  /**
   * @throws workspace_not_found
   * @throws forbidden                    a field needs more than the caller holds
   * @throws workspace_name_conflict
   * @throws workspace_database_conflict
   */
  async update(
    workspaceId: string,
    patch: WorkspacePatch,
    caller: Pick<Caller, 'checkChange'>,
  ): Promise<Workspace> {
    const before = await this.get(workspaceId)
    caller.checkChange(before, patch)
    const after = { ...before, ...patch }
    if (await this.isNameFree(after)) await this.refuseSharedDatabase(after)
    const now = timestamp(this.parts.clock)
    const changed = await changeRow(this.parts.rows, tables.workspaces, [workspaceId], row => {
      caller.checkChange(row, patch)
      return { ...row, ...patch, updatedAt: now }
    })
    if ('absent' in changed) throw workspaceNotFound(workspaceId)
    if ('refused' in changed) throw nameOrIdTaken(changed.refused, after)
    return changed.row
  }

  /**
   * Delete a workspace and all that it owns. The row goes last, so that a failed delete can be sent again.
   *
   * @throws workspace_not_found
   * @throws control_plane_unavailable  it could not be recorded; nothing was deleted
   * @throws cascade_incomplete         something is left; the workspace stays
   */
  async delete(workspaceId: string, caller?: Pick<Caller, 'record'>): Promise<void> {
    const workspace = await this.get(workspaceId)
    const record = caller ? [caller.record({ label: workspace.name })] : []
    for (const write of record) await rehearse(this.parts.rows, write)
    try {
      for (let attempt = 0; attempt < purgesMax; attempt++) {
        for (const step of this.parts.purge) await step(workspace)
        if (await this.remove(workspaceId, record)) return
      }
      throw new Error(`knowledge bases were made during each of ${purgesMax} purges`)
    } catch (error) {
      this.parts.log.error({ workspaceId, error }, 'workspace delete stopped half-way')
      throw new WbError(
        'cascade_incomplete',
        `workspace '${workspaceId}' could not be deleted whole`,
        {},
        { cause: error },
      )
    }
  }

  /** Delete the rows, the workspace's own last; false when a knowledge base was made since the purge. */
  private async remove(workspaceId: string, record: readonly Write[]): Promise<boolean> {
    const byWorkspace = { index: 'byWorkspace', prefix: [workspaceId] }
    const outcome = await this.parts.rows.atomic([
      { op: 'requireNone', table: tables.knowledgeBases, ...byWorkspace },
      ...owned.map((table): Write => ({ op: 'deleteAll', table, ...byWorkspace })),
      { op: 'delete', table: tables.workspaces, key: [workspaceId] },
      ...record,
    ])
    const isGone = !outcome.ok && outcome.reason === 'absent'
    return outcome.ok || isGone
  }

  /** Delete the workspaces of kind `mock`, which last as long as the server that they were made in. */
  async deleteEphemeral(): Promise<void> {
    const ofKind = { index: 'byKind', prefix: ['mock'], limit: ephemeralSlice }
    for (;;) {
      const found = await this.parts.rows.list(tables.workspaces, ofKind)
      for (const { row } of found) await this.delete(row.workspaceId)
      if (found.length < ephemeralSlice) return
    }
  }

  private async isNameFree(workspace: Workspace): Promise<boolean> {
    const [holder] = await this.parts.rows.list(tables.workspaces, {
      index: 'byName',
      prefix: [workspace.name],
      limit: 1,
    })
    return holder === undefined || holder.row.workspaceId === workspace.workspaceId
  }

  private async refuseSharedDatabase(workspace: Workspace): Promise<void> {
    if (workspace.url === null) return
    const bound = await this.parts.rows.list(tables.workspaces, {
      index: 'byUrl',
      prefix: [workspace.url],
      limit: 1_000,
    })
    const other = bound.find(
      ({ row }) => row.keyspace === workspace.keyspace && row.workspaceId !== workspace.workspaceId,
    )
    if (other)
      throw new WbError('workspace_database_conflict', 'another workspace is bound to this url and keyspace')
  }
}

function nameOrIdTaken(outcome: Outcome & { ok: false }, workspace: Workspace): WbError {
  return outcome.reason === 'taken'
    ? new WbError('workspace_name_conflict', `a workspace named '${workspace.name}' is not available`)
    : new WbError('conflict', `workspace with id '${workspace.workspaceId}' already exists`)
}
