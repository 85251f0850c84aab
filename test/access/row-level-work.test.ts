import { describe, expect, test } from 'vitest'
import type { AnyTable, RowStore, Stored } from '../../src/storage/rows.ts'
import { codeOf, itemsOf, type Send } from './principal-requests.ts'
import {
  ingest,
  missingId,
  openRestrictedWorkspace,
  type RestrictedWorkspace,
} from './restricted-workspace.ts'

/** More than a batch of rows. */
const hiddenCount = 60
const policies = {
  'the built-in policy': undefined,
  'a policy on metadata': "team = $principal.team OR '*' = ANY(visible_to)",
}

/** A workspace that counts the documents and jobs that a request reads from the store. */
interface CountedWorkspace extends RestrictedWorkspace {
  /** Returns the number of rows that a request reads, and their length as JSON. */
  countOf(request: () => Promise<unknown>): Promise<{ rows: number; chars: number }>
}

async function openCounted(policyDsl?: string): Promise<CountedWorkspace> {
  let read: string[] = []
  const count = (table: AnyTable, found: readonly Stored<unknown>[]) => {
    if (table.name === 'documents' || table.name === 'jobs') read.push(...found.map(({ text }) => text))
  }
  const opened = await openRestrictedWorkspace({
    rows: (store): RowStore => ({
      ...store,
      async get(table, key, tags) {
        const stored = await store.get(table, key, tags)
        count(table, stored ? [stored] : [])
        return stored
      },
      async list(table, query) {
        const found = await store.list(table, query)
        count(table, found)
        return found
      },
    }),
  })
  const { operator, workspace, base } = opened
  for (const [principalId, team] of [
    ['alice', 'blue'],
    ['bob', 'red'],
  ])
    await operator(`POST ${workspace}/principals`, { principalId, attributes: { team } })
  if (policyDsl) await operator(`PATCH ${base}`, { policyDsl, policyEnabled: true })
  return {
    ...opened,
    async countOf(request) {
      read = []
      await request()
      return { rows: read.length, chars: read.reduce((sum, text) => sum + text.length, 0) }
    },
  }
}

async function addDocuments(send: Send, base: string, team: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await send(`POST ${base}/documents`, { metadata: { team, title: `${n}` } })
}

async function addJobs(send: Send, base: string, team: string, texts: readonly string[]): Promise<void> {
  for (const text of texts)
    await send(`POST ${base}/ingest?async=true`, { text: `${text} of ${team}.`, metadata: { team } })
}

describe.each(Object.entries(policies))('timing, with %s', (_, policyDsl) => {
  test('a list of documents reads no hidden document', async () => {
    const { as, base, countOf } = await openCounted(policyDsl)
    const [alice, bob] = [as('alice'), as('bob')]
    await addDocuments(alice, base, 'blue', 2)
    await addDocuments(bob, base, 'red', hiddenCount)
    await addDocuments(alice, base, 'blue', 2)
    const counted = await countOf(async () =>
      expect(itemsOf(await alice(`GET ${base}/documents`))).toHaveLength(4),
    )
    expect(counted.rows).toBe(4)
  })

  test('a list of jobs reads no hidden job', async () => {
    const { wb, as, base, workspace, countOf } = await openCounted(policyDsl)
    const [alice, bob] = [as('alice'), as('bob')]
    await addJobs(alice, base, 'blue', ['First', 'Second'])
    await addJobs(
      bob,
      base,
      'red',
      Array.from({ length: hiddenCount }, (_, n) => `Text ${n}`),
    )
    await addJobs(alice, base, 'blue', ['Third'])
    await wb.settle()
    const counted = await countOf(async () =>
      expect(itemsOf(await alice(`GET ${workspace}/jobs`))).toHaveLength(3),
    )
    // Three jobs, and the document of each.
    expect(counted.rows).toBe(6)
  })

  test.each(['GET', 'PATCH', 'DELETE'])('%s of a hidden document does not read it', async method => {
    const { as, base, countOf } = await openCounted(policyDsl)
    const [alice, bob] = [as('alice'), as('bob')]
    const metadata = { team: 'red', note: 'x'.repeat(10_000) }
    const hidden = await ingest(bob, base, { text: 'A turbine.', metadata })
    const request = async (documentId: string) => {
      const json = method === 'PATCH' ? { fileType: 'text' } : undefined
      const answer = await alice(`${method} ${base}/documents/${documentId}`, json)
      expect(codeOf(answer)).toBe(method === 'GET' ? 'document_not_found' : 'policy_denied')
    }
    const none = { rows: 0, chars: 0 }
    expect(await countOf(() => request(missingId))).toEqual(none)
    expect(await countOf(() => request(hidden))).toEqual(none)
  })
})
