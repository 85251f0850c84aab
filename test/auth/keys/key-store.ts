import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { Caller } from '../../../src/access/caller.ts'
import { anonymousContext, type Subject, verifiedContext } from '../../../src/access/subject.ts'
import { digestToken, type KeyCost, newToken } from '../../../src/auth/keys/token.ts'
import type { AuditDetails } from '../../../src/contract/audit-record.ts'
import { openCursors, Pager } from '../../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../../src/storage/open.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { type ApiKeyRow, tables } from '../../../src/storage/tables.ts'
import { lowCost } from '../../harness/key-cost.ts'
import { TestClock } from '../../harness/runtime.ts'

/** Key of the checksums in tokens of this store. */
export const tokenKey = 'the-key-that-marks-tokens'
export const workspaceId = '11111111-1111-4111-8111-111111111111'

/**
 * Opens an in-memory store with one workspace, a clock that only moves on request, and counts of the calls to
 * the store.
 */
export async function openKeyStore() {
  const clock = new TestClock()
  const store = await openEmbeddedStore({ path: ':memory:', clock })
  onTestFinished(() => store.close())
  const cursors = await openCursors(store.rows)
  const counts = { get: 0, list: 0, atomic: 0 }
  const listed: { table: string; index: string; prefix: readonly unknown[]; rows: number }[] = []
  const rows: RowStore = {
    get(table, key) {
      counts.get++
      return store.rows.get(table, key)
    },
    async list(table, query) {
      counts.list++
      const found = await store.rows.list(table, query)
      listed.push({ table: table.name, index: query.index, prefix: query.prefix, rows: found.length })
      return found
    },
    count: store.rows.count,
    measure: store.rows.measure,
    feed: store.rows.feed,
    atomic(writes) {
      counts.atomic++
      return store.rows.atomic(writes)
    },
  }
  const now = new Date(clock.now()).toISOString()
  const workspace = { workspaceId, name: 'one', createdAt: now, updatedAt: now }
  await store.rows.atomic([{ op: 'insert', table: tables.workspaces, row: workspace }])
  return {
    clock,
    rows,
    plain: store.rows,
    pager: new Pager(rows, cursors),
    counts,
    listed,
    tokenKey,
    keyCost: lowCost,
  }
}

/** Stores a key and returns its row and token. */
export async function storeKey(
  rows: RowStore,
  fields: Partial<ApiKeyRow> = {},
  keyCost: KeyCost = lowCost,
): Promise<{ token: string; row: ApiKeyRow }> {
  const { token, prefix } = newToken(tokenKey)
  const row: ApiKeyRow = {
    workspaceId,
    keyId: randomUUID(),
    prefix,
    label: 'a key',
    scopes: ['read'],
    principalId: null,
    createdAt: '2025-12-31T00:00:00.000Z',
    lastUsedAt: null,
    revokedAt: null,
    expiresAt: null,
    digest: await digestToken(token, keyCost),
    ...fields,
  }
  await rows.atomic([{ op: 'insert', table: tables.apiKeys, row }])
  return { token, row }
}

export async function readKeyRow(rows: RowStore, { keyId }: Pick<ApiKeyRow, 'keyId'>): Promise<ApiKeyRow> {
  return (await rows.get(tables.apiKeys, [workspaceId, keyId]))!.row
}

/** Creates a caller that collects its audit records. `confirm` replaces the repeated authorization. */
export function createCaller(
  fields: Partial<Subject> | 'anonymous',
  confirm: Caller['reauthorize'] = async () => {},
): Pick<Caller, 'auth' | 'record' | 'reauthorize'> & { records: AuditDetails[] } {
  const records: AuditDetails[] = []
  const auth =
    fields === 'anonymous'
      ? anonymousContext('apiKey')
      : verifiedContext('apiKey', {
          id: 'caller',
          label: null,
          type: 'apiKey',
          workspaceScopes: [workspaceId],
          scopes: null,
          role: null,
          principalId: 'caller',
          keyLifetimeMaxMs: null,
          ...fields,
        })
  const record = (details: AuditDetails) => {
    records.push(details)
    return { op: 'insert', table: tables.audit, row: { auditId: randomUUID(), details } } as const
  }
  return { auth, record, reauthorize: confirm, records }
}
