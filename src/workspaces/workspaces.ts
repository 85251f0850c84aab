import { isDeepStrictEqual } from 'node:util'
import { authorizeDestination } from '../access/authorize-destination.ts'
import type { Caller } from '../access/caller.ts'
import { requireWorkspace, workspaceNotFound } from '../access/require-workspace.ts'
import type { Subject } from '../access/subject.ts'
import { workspaceVersion } from '../access/versions/version-write.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import type { Principal } from '../contract/principals.ts'
import type { Workspace, WorkspaceCreate, WorkspacePatch } from '../contract/workspaces.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write, WriteOutcome } from '../storage/rows.ts'
import { tables, type WorkspaceRow } from '../storage/tables.ts'
import { type PurgeStep, removeWorkspace } from './remove-workspace.ts'
import { seedWrites } from './seeds.ts'

const ephemeralPageSize = 200

/** Runs a change of the rows that everyone in a workspace may see, and fits its vector spaces again. */
export type RefitWorkspaceAfter = <T>(workspaceId: string, change: () => Promise<T>) => Promise<T>

/** Workspaces, which are the tenants of a runtime. */
export class Workspaces {
  constructor(
    private readonly deps: {
      rows: RowStore
      pager: Pager
      clock: Clock
      log: Log
      purge: readonly PurgeStep[]
      /** Prepares the rows of a workspace for row-level access. */
      publish: (workspaceId: string, signal: AbortSignal) => Promise<void>
      refitAfter: RefitWorkspaceAfter
    },
  ) {}

  /**
   * Lists the workspaces that the caller has access to, in order of creation.
   *
   * @throws invalid_cursor
   */
  async list(query: PageQuery, subject: Subject | null): Promise<RowPage<Workspace>> {
    const { rows, pager } = this.deps
    const list = { index: 'byCreation', prefix: [] }
    const workspaceIds = subject?.workspaceScopes
    if (!workspaceIds) return pager.page(tables.workspaces, list, query)
    const accessible = await Promise.all(
      [...new Set(workspaceIds)].map(id => rows.get(tables.workspaces, [id])),
    )
    return pager.pageOfRows(
      tables.workspaces,
      list,
      accessible.filter(stored => stored !== undefined),
      query,
    )
  }

  /**
   * Creates a workspace with its initial contents in one transaction.
   *
   * @throws conflict                     the ID is taken
   * @throws workspace_name_conflict      the name is taken
   * @throws workspace_database_conflict  another workspace uses the same URL and keyspace
   */
  async create(body: WorkspaceCreate, caller: Pick<Caller, 'record'>): Promise<Workspace> {
    const { rows, clock } = this.deps
    const now = timestamp(clock)
    const workspace: WorkspaceRow = {
      ...body,
      workspaceId: body.workspaceId ?? newId(),
      createdAt: now,
      updatedAt: now,
      databaseKey: databaseKeyOf(body),
    }
    const outcome = await rows.atomic([
      { op: 'insert', table: tables.workspaces, row: workspace },
      ...seedWrites(workspace),
      caller.record({ label: workspace.name }, workspace.workspaceId),
    ])
    if (!outcome.ok) throw workspaceConflict(outcome, workspace)
    return workspace
  }

  /** @throws workspace_not_found */
  get(workspaceId: string): Promise<Workspace> {
    return requireWorkspace(this.deps.rows, workspaceId)
  }

  /**
   * Changes a workspace. To switch row-level access on, first prepares its rows, which can take long. Until then, everyone
   * sees all rows.
   *
   * @throws workspace_not_found
   * @throws forbidden                    a changed field requires more scopes than the caller has; with row-level access,
   *                                      this includes the fields of the store
   * @throws workspace_name_conflict
   * @throws workspace_database_conflict
   */
  async update(
    workspaceId: string,
    patch: WorkspacePatch,
    caller: Pick<Caller, 'auth' | 'checkChange' | 'recordChange' | 'signal'>,
  ): Promise<Workspace> {
    const before = await this.get(workspaceId)
    authorizeChange(before, patch, caller)
    const isSwitchedOn = patch.rlacEnabled === true && !before.rlacEnabled
    if (isSwitchedOn) await this.deps.publish(workspaceId, caller.signal)
    const firstPrincipal = isSwitchedOn ? await this.firstPrincipalWrites(workspaceId) : []
    const now = timestamp(this.deps.clock)
    const change = () =>
      changeRow(
        this.deps.rows,
        tables.workspaces,
        [workspaceId],
        row => {
          authorizeChange(row, patch, caller)
          return { ...withDatabaseKey(row, patch), ...patch, updatedAt: now }
        },
        (oldRow, newRow) => [
          ...firstPrincipal,
          ...workspaceVersion(oldRow, newRow, now),
          ...caller.recordChange(oldRow, newRow, { label: newRow.name }),
        ],
      )
    const isSwitched = patch.rlacEnabled !== undefined && patch.rlacEnabled !== before.rlacEnabled
    const changed = await (isSwitched ? this.deps.refitAfter(workspaceId, change) : change())
    if ('absent' in changed) throw workspaceNotFound(workspaceId)
    // Another request has just created the first principal.
    if ('failedCheck' in changed && changed.failedCheck.at < firstPrincipal.length)
      return this.update(workspaceId, patch, caller)
    if ('failedCheck' in changed) throw workspaceConflict(changed.failedCheck, { ...before, ...patch })
    return changed.row
  }

  /** Returns the write that creates the administrator of a workspace without principals. */
  private async firstPrincipalWrites(workspaceId: string): Promise<Write[]> {
    const { rows, clock } = this.deps
    if ((await rows.count(tables.principals, 'byWorkspace', [workspaceId])) > 0) return []
    const now = timestamp(clock)
    const row: Principal = {
      workspaceId,
      principalId: 'admin',
      label: 'Administrator',
      attributes: { admin: 'true' },
      role: 'viewer',
      createdAt: now,
      updatedAt: now,
    }
    return [{ op: 'insert', table: tables.principals, row }]
  }

  /**
   * Deletes a workspace and everything in it.
   *
   * @throws workspace_not_found, and the errors of {@link removeWorkspace}
   */
  async delete(workspaceId: string, caller?: Pick<Caller, 'record' | 'reauthorize'>): Promise<void> {
    const workspace = await this.get(workspaceId)
    await removeWorkspace(this.deps, workspace, {
      record: caller?.record({ label: workspace.name }),
      authorize: caller && (() => caller.reauthorize()),
    })
  }

  /** Deletes the workspaces of kind `mock`, which exist only until their server stops. */
  async deleteEphemeral(): Promise<void> {
    const query = { index: 'byKind', prefix: ['mock'], limit: ephemeralPageSize }
    for (;;) {
      const page = await this.deps.rows.list(tables.workspaces, query)
      for (const { row } of page) await this.delete(row.workspaceId)
      if (page.length < ephemeralPageSize) return
    }
  }
}

/** @throws forbidden */
function authorizeChange(
  workspace: Workspace,
  patch: WorkspacePatch,
  caller: Pick<Caller, 'auth' | 'checkChange'>,
): void {
  caller.checkChange(workspace, patch)
  const { url, keyspace, credentials } = { ...workspace, ...patch }
  const { url: storedUrl, keyspace: storedKeyspace, credentials: storedCredentials } = workspace
  const isSameStore = isDeepStrictEqual(
    [url, keyspace, credentials],
    [storedUrl, storedKeyspace, storedCredentials],
  )
  if (!isSameStore) authorizeDestination(workspace, caller)
}

/** Returns a key that is equal for workspaces with the same database; null for a workspace without a database. */
function databaseKeyOf({ url, keyspace }: Pick<Workspace, 'url' | 'keyspace'>): string | null {
  return url === null ? null : JSON.stringify([url, keyspace])
}

/**
 * Returns a workspace with a new database key if its database changes. Otherwise, keeps the key: workspaces from earlier
 * releases can share a database, so a new key could be a duplicate.
 */
function withDatabaseKey(
  row: WorkspaceRow,
  { url = row.url, keyspace = row.keyspace }: WorkspacePatch,
): WorkspaceRow {
  const isSame = url === row.url && keyspace === row.keyspace
  return isSame ? row : { ...row, databaseKey: databaseKeyOf({ url, keyspace }) }
}

function workspaceConflict(outcome: WriteOutcome & { ok: false }, { workspaceId, name }: Workspace): WbError {
  if (outcome.unique === 'name')
    return new WbError('workspace_name_conflict', `the workspace name '${name}' is not available`)
  if (outcome.unique === 'database')
    return new WbError('workspace_database_conflict', 'another workspace uses this url and keyspace')
  return new WbError('conflict', `workspace with id '${workspaceId}' already exists`)
}
