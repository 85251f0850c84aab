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
 * Secrets that records may use: released by the configuration, by default, or by stored releases.
 *
 * @see docs/security.md#rule-1
 */
export class SecretReleases {
  constructor(
    private readonly parts: { rows: RowStore; pager: Pager; clock: Clock; policy: ReleasePolicy },
  ) {}

  /**
   * Returns true if the secret behind a record's reference may currently be sent to a host.
   *
   * @param host  the host that is really contacted, with its port unless it is the default of the scheme
   */
  async covers(ref: string, host: string, workspaceId: string): Promise<boolean> {
    const { policy } = this.parts
    const normal = normalizeReleasable(ref, policy)
    if (normal === undefined) return false
    if (isReleased(normal, host, workspaceId, policy)) return true
    const acts = await Promise.all(
      [workspaceId, null].map(where => this.find(releaseIdOf(normal, host, where))),
    )
    return acts.some(act => act !== undefined)
  }

  /** @throws invalid_cursor */
  async list(query: PageQuery): Promise<RowPage<SecretRelease>> {
    return this.parts.pager.page(tables.secretReleases, { index: 'byOrdinal', prefix: [] }, query)
  }

  /**
   * Releases a reference for a host.
   *
   * @throws validation_error     the reference can never be released for records
   * @throws workspace_not_found
   * @throws conflict             it has already been released for this host
   */
  async release(
    { ref, host, workspaceId }: SecretReleaseCreate,
    caller: Pick<Caller, 'record'>,
  ): Promise<SecretRelease> {
    const { rows, clock, policy } = this.parts
    const normal = normalizeReleasable(ref, policy)
    if (normal === undefined)
      throw new WbError('validation_error', `ref: records may not use the secret ${ref}`, {
        hint: 'Secrets of the configuration are not available to records. Store the key under another name.',
      })
    const releaseId = releaseIdOf(normal, host, workspaceId)
    const release = { releaseId, ref: normal, host, workspaceId, createdAt: timestamp(clock) }
    const place: Write[] =
      workspaceId === null ? [] : [{ op: 'require', table: tables.workspaces, key: [workspaceId] }]
    const outcome = await rows.atomic([
      ...place,
      { op: 'insert', table: tables.secretReleases, row: release },
      caller.record({ releaseId, ref: normal, host }, workspaceId ?? undefined),
    ])
    if (outcome.ok) return release
    if (outcome.reason === 'absent') throw workspaceNotFound(workspaceId!)
    throw new WbError('conflict', `${normal} is already released for ${host}, as '${releaseId}'`)
  }

  /** @throws secret_release_not_found */
  async revoke(releaseId: string, caller: Pick<Caller, 'record'>): Promise<void> {
    const release = await this.find(releaseId)
    if (release) {
      const { ref, host, workspaceId } = release
      const outcome = await this.parts.rows.atomic([
        { op: 'delete', table: tables.secretReleases, key: [releaseId] },
        caller.record({ releaseId, ref, host }, workspaceId ?? undefined),
      ])
      if (outcome.ok) return
    }
    throw new WbError('secret_release_not_found', `secret release '${releaseId}' not found`)
  }

  private async find(releaseId: string): Promise<SecretRelease | undefined> {
    return (await this.parts.rows.get(tables.secretReleases, [releaseId]))?.row
  }
}

/**
 * Returns the id of a release. Equal releases have the same id, so each exists once and is found by its id.
 */
function releaseIdOf(ref: string, host: string, workspaceId: string | null): string {
  return idFrom('secret release', ref, host, workspaceId)
}
