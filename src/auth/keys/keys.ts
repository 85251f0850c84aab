import type { Caller } from '../../access/caller.ts'
import type { Clock } from '../../base/clock.ts'
import type { ApiKey, ApiKeyCreate, ApiKeyRotate } from '../../contract/keys.ts'
import type { PageQuery } from '../../contract/page.ts'
import type { Page, Pager } from '../../storage/cursor.ts'
import type { RowStore } from '../../storage/rows.ts'

/** A key and its token, which is known this once. */
export interface Minted {
  readonly plaintext: string
  readonly key: ApiKey
}

/** The keys of workspaces. @see specification 2.3, 3 */
export class ApiKeys {
  constructor(readonly parts: { rows: RowStore; pager: Pager; clock: Clock }) {}

  list(_workspaceId: string, _query: PageQuery): Promise<Page<ApiKey>> {
    throw new Error('not written')
  }

  create(_workspaceId: string, _body: ApiKeyCreate, _caller: Caller): Promise<Minted> {
    throw new Error('not written')
  }

  get(_workspaceId: string, _keyId: string): Promise<ApiKey> {
    throw new Error('not written')
  }

  rotate(
    _key: { workspaceId: string; keyId: string },
    _body: ApiKeyRotate,
    _caller: Caller,
  ): Promise<Minted & { previous: ApiKey }> {
    throw new Error('not written')
  }

  revoke(_key: { workspaceId: string; keyId: string }, _caller: Caller): Promise<void> {
    throw new Error('not written')
  }
}
