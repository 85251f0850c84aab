import type { Caller } from '../access/caller.ts'
import { workspaceNotFound } from '../access/require-workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { idFrom } from '../base/id.ts'
import { isReleased, normalizeReleasable, type ReleasePolicy } from '../config/release-policy.ts'
import { WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import type { SecretRelease, SecretReleaseCreate } from '../contract/releases.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import type { RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/**
 * Decides which secrets records may use. A secret can be released by default, by the configuration, or by a stored
 * release.
 *
 * @see docs/security.md#rule-1
 */
export class SecretReleases {
  constructor(private readonly deps: { rows: RowStore; pager: Pager; clock: Clock; policy: ReleasePolicy }) {}

  /**
   * Returns true if the secret that a record refers to may currently be sent to a host.
   *
   * @param host  the host that receives the request, with its port unless that is the default port of the scheme
   */
  async covers(ref: string, host: string, workspaceId: string): Promise<boolean> {
    const { policy } = this.deps
    const normalizedRef = normalizeReleasable(ref, policy)
    if (normalizedRef === undefined) return false
    if (isReleased(normalizedRef, host, workspaceId, policy)) return true
    const releases = await Promise.all(
      [workspaceId, null].map(releasedTo => this.find(releaseIdOf(normalizedRef, host, releasedTo))),
    )
    return releases.some(release => release !== undefined)
  }

  /** @throws invalid_cursor */
  async list(query: PageQuery): Promise<RowPage<SecretRelease>> {
    return this.deps.pager.page(tables.secretReleases, { index: 'byOrdinal', prefix: [] }, query)
  }

  /**
   * Releases a reference for a host.
   *
   * @throws validation_error     the reference cannot be released for records
   * @throws workspace_not_found
   * @throws conflict             the reference is already released for this host
   */
  async release(
    { ref, host, workspaceId }: SecretReleaseCreate,
    caller: Pick<Caller, 'record'>,
  ): Promise<SecretRelease> {
    const { rows, clock, policy } = this.deps
    const normalizedRef = normalizeReleasable(ref, policy)
    if (normalizedRef === undefined)
      throw new WbError('validation_error', `ref: records may not use the secret ${ref}`, {
        hint: 'Secrets of the configuration are not available to records. Store the key under another name.',
      })
    const releaseId = releaseIdOf(normalizedRef, host, workspaceId)
    const release = { releaseId, ref: normalizedRef, host, workspaceId, createdAt: timestamp(clock) }
    const checks: Write[] =
      workspaceId === null ? [] : [{ op: 'require', table: tables.workspaces, key: [workspaceId] }]
    const outcome = await rows.atomic([
      ...checks,
      { op: 'insert', table: tables.secretReleases, row: release },
      caller.record({ releaseId, ref: normalizedRef, host }, workspaceId ?? undefined),
    ])
    if (outcome.ok) return release
    if (outcome.reason === 'absent') throw workspaceNotFound(workspaceId!)
    throw new WbError('conflict', `${normalizedRef} is already released for ${host}, as '${releaseId}'`)
  }

  /** @throws secret_release_not_found */
  async revoke(releaseId: string, caller: Pick<Caller, 'record'>): Promise<void> {
    const release = await this.find(releaseId)
    if (release) {
      const { ref, host, workspaceId } = release
      const outcome = await this.deps.rows.atomic([
        { op: 'delete', table: tables.secretReleases, key: [releaseId] },
        caller.record({ releaseId, ref, host }, workspaceId ?? undefined),
      ])
      if (outcome.ok) return
    }
    throw new WbError('secret_release_not_found', `secret release '${releaseId}' not found`)
  }

  private async find(releaseId: string): Promise<SecretRelease | undefined> {
    return (await this.deps.rows.get(tables.secretReleases, [releaseId]))?.row
  }
}

/**
 * Returns the ID of a release. The ID is derived from the other fields, so two equal releases cannot exist, and a
 * release can be found by its fields.
 */
function releaseIdOf(ref: string, host: string, workspaceId: string | null): string {
  return idFrom('secret release', ref, host, workspaceId)
}
