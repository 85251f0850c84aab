import { describe, expect, test } from 'vitest'
import type { TrashEntry } from '../../src/contract/trash.ts'
import type { Send } from './principal-requests.ts'
import { openRestrictedWorkspace, type RestrictedWorkspace } from './restricted-workspace.ts'

async function ingest(send: Send, base: string, fields: object): Promise<string> {
  const { body, text } = await send(`POST ${base}/ingest`, fields)
  const { documentId } = (body.document ?? {}) as { documentId?: string }
  if (documentId === undefined) throw new Error(text)
  return documentId
}

async function entries(send: Send, base: string): Promise<TrashEntry[]> {
  return (await send(`GET ${base}/documents/trash`)).body.items as TrashEntry[]
}

/** Deletes a document, and returns its entry as the operator sees it. */
async function remove({ operator, base }: RestrictedWorkspace, documentId: string): Promise<TrashEntry> {
  await operator(`DELETE ${base}/documents/${documentId}`)
  return (await entries(operator, base)).find(({ document }) => document.documentId === documentId)!
}

test('the trash shows and restores what a caller could see as documents, with its visibility', async () => {
  const workspace = await openRestrictedWorkspace()
  const { base, as } = workspace
  const [ada, bob, cyd] = [as('ada'), as('bob'), as('cyd')]
  const documentId = await ingest(ada, base, {
    text: 'A plan of ada and bob.',
    sourceFilename: 'plan.md',
    visibleTo: ['ada', 'bob'],
    metadata: { team: 'red' },
  })
  const { entryId } = await remove(workspace, documentId)
  expect((await entries(bob, base)).map(entry => entry.entryId)).toEqual([entryId])
  expect(await entries(cyd, base)).toEqual([])
  const [restore, purge] = [
    `POST ${base}/documents/trash/${entryId}/restore`,
    `POST ${base}/documents/trash/bulk-delete`,
  ]
  expect(await cyd(restore)).toMatchObject({ status: 403, body: { error: { code: 'policy_denied' } } })
  const unknown = restore.replace(entryId, '00000000-0000-4000-8000-000000000000')
  const { status, body } = await cyd(unknown)
  expect({ status, code: (body.error as { code: string }).code }).toEqual({
    status: 403,
    code: 'policy_denied',
  })
  expect((await cyd(purge, { entryIds: [entryId] })).body).toMatchObject({
    deleted: [],
    failed: [{ code: 'policy_denied' }],
  })

  expect((await bob(restore)).body).toMatchObject({
    documentId,
    visibleTo: ['ada', 'bob'],
    ownerPrincipalId: 'ada',
    metadata: { team: 'red' },
  })
  expect((await ada(`GET ${base}/documents/${documentId}/chunks`)).text).toContain('A plan of ada')
  expect((await cyd(`GET ${base}/documents/${documentId}`)).status).toBe(404)
  expect((await cyd(`POST ${base}/search`, { text: 'plan' })).text).toBe('[]')
})

test('a document that the caller cannot see neither prevents a restore nor becomes known', async () => {
  const workspace = await openRestrictedWorkspace()
  const { base, as, operator } = workspace
  const fields = { text: 'A shared text.', sourceFilename: 'same.md' }
  const documentId = await ingest(operator, base, { ...fields, ownerPrincipalId: 'ada', visibleTo: ['ada'] })
  const { entryId } = await remove(workspace, documentId)
  await ingest(operator, base, { ...fields, ownerPrincipalId: 'ada', visibleTo: ['bob'] })
  const restored = await as('ada')(`POST ${base}/documents/trash/${entryId}/restore`)
  expect(restored).toMatchObject({ status: 200, body: { documentId } })
  const listed = (await operator(`GET ${base}/documents`)).body.items as { visibleTo: string[] }[]
  expect(listed.map(({ visibleTo }) => visibleTo)).toEqual([['bob'], ['ada']])
})

test('a revocation in the trash takes effect, and row-level access publishes deleted documents like others', async () => {
  const workspace = await openRestrictedWorkspace()
  const { base, as, operator } = workspace
  await operator(`PATCH ${workspace.workspace}`, { rlacEnabled: false })
  const documentId = await ingest(operator, base, { text: 'From before row-level access.' })
  const { entryId } = await remove(workspace, documentId)
  await operator(`PATCH ${workspace.workspace}`, { rlacEnabled: true })
  expect(await entries(as('ada'), base)).toMatchObject([{ entryId, document: { visibleTo: ['*'] } }])
  const policy = "$principal.team = 'red'"
  await operator(`PATCH ${base}`, { policyDsl: policy, policyEnabled: true })
  expect(await entries(as('ada'), base)).toEqual([])
  await operator(`PATCH ${base}`, { policyEnabled: false })
  expect((await as('ada')(`POST ${base}/documents/trash/${entryId}/restore`)).status).toBe(200)
  expect((await as('bob')(`POST ${base}/search`, { text: 'before' })).text).toContain(documentId)
})

test('a caller who cannot see a deleted document gets the same answers for its ID as before the deletion', async () => {
  const workspace = await openRestrictedWorkspace()
  const { base, as } = workspace
  const documentId = await ingest(as('ada'), base, { text: 'A plan of ada.' })
  const answers = async () => {
    const requests: [string, object][] = [
      ['documents', { documentId }],
      ['ingest', { documentId, text: 'A text of bob.' }],
      ['ingest?async=true', { documentId, text: 'Another text of bob.' }],
      ['records', { records: [{ id: `${documentId}:0`, text: 'A record of bob.' }] }],
    ]
    const found: unknown[] = []
    for (const [path, body] of requests) {
      const { status, body: answer } = await as('bob')(`POST ${base}/${path}`, body)
      const { code, message } = answer.error as { code: string; message: string }
      found.push([path, status, code, message])
    }
    return found
  }
  const whileStored = await answers()
  const { entryId } = await remove(workspace, documentId)
  expect(await answers()).toEqual(whileStored)
  expect(whileStored.map(answer => (answer as unknown[])[1])).toEqual([409, 409, 409, 403])
  expect((await as('ada')(`POST ${base}/documents/trash/${entryId}/restore`)).status).toBe(200)
  expect((await as('ada')(`POST ${base}/search`, { text: 'plan' })).text).toContain('A plan of ada.')
})

test.each(['documents', 'ingest', 'ingest?async=true'])(
  'a new document of POST %s with the ID of a deleted one that the caller can see replaces it in the trash',
  async path => {
    const workspace = await openRestrictedWorkspace()
    const { base, as, operator } = workspace
    const documentId = await ingest(as('ada'), base, { text: 'An old text.', visibleTo: ['ada', 'bob'] })
    await remove(workspace, documentId)
    const fields = path === 'documents' ? {} : { text: 'A new text.' }
    const created = await as('bob')(`POST ${base}/${path}`, { documentId, ...fields })
    expect([201, 202]).toContain(created.status)
    expect(await entries(operator, base)).toEqual([])
  },
)

test('an ingest that fails does not delete the document with its ID from the trash', async () => {
  const workspace = await openRestrictedWorkspace()
  const { base, as } = workspace
  const documentId = await ingest(as('ada'), base, { text: 'An old text.' })
  await remove(workspace, documentId)
  const chunker = { maxChars: 30, minChars: 40 }
  const failed = await as('ada')(`POST ${base}/ingest`, { documentId, text: 'A new text.', chunker })
  expect(failed).toMatchObject({ body: { error: { code: 'invalid_chunker' } } })
  expect(await entries(as('ada'), base)).toHaveLength(1)
})

test('a record cannot have the ID of a chunk of a document in the trash', async () => {
  const workspace = await openRestrictedWorkspace()
  const { base, as } = workspace
  const documentId = await ingest(as('ada'), base, { text: 'A plan of ada.' })
  const id = `${documentId}:0`
  await remove(workspace, documentId)
  const stored = await as('ada')(`POST ${base}/records`, { records: [{ id, text: 'A record.' }] })
  expect(stored).toMatchObject({
    status: 409,
    body: { error: { code: 'conflict', message: expect.stringContaining('deleted document') } },
  })
})

test('a record cannot have the ID of a later chunk of a hidden document, or of one that does not exist', async () => {
  const { base, as } = await openRestrictedWorkspace()
  const hidden = await ingest(as('ada'), base, { text: 'A plan of ada.' })
  const own = await ingest(as('bob'), base, { text: 'A plan of bob.' })
  const store = async (documentId: string) => {
    const { status } = await as('bob')(`POST ${base}/records`, {
      records: [{ id: `${documentId}:7`, text: 'A record.' }],
    })
    return status
  }
  expect(await store(hidden)).toBe(403)
  expect(await store('00000000-0000-4000-8000-000000000000')).toBe(403)
  expect(await store(own)).toBe(200)
})

describe('a key that is revoked while the server processes a list', () => {
  const bulkDelete = 'POST BASE/documents/bulk-delete'
  test.each([
    ['deletes no more documents permanently', bulkDelete, { permanently: true }, [2, 0]],
    ['moves no more documents to the trash', bulkDelete, {}, [2, 1]],
    ['deletes no more documents from the trash', 'POST BASE/documents/trash/bulk-delete', {}, [0, 2]],
    ['restores no more documents', 'POST BASE/documents/trash/bulk-restore', {}, [1, 2]],
  ])('%s', async (_, line, fields, [documentsLeft, entriesLeft]) => {
    let interruption: (() => Promise<unknown>) | undefined
    const interrupt = async () => {
      const run = interruption
      interruption = undefined
      await run?.()
    }
    const workspace = await openRestrictedWorkspace({
      content: store => ({
        ...store,
        async write(...unit) {
          const outcome = await store.write(...unit)
          await interrupt()
          return outcome
        },
      }),
      rows: store => ({
        ...store,
        async atomic(writes) {
          const outcome = await store.atomic(writes)
          if (writes.some(({ table }) => table.name === 'deleted_documents')) await interrupt()
          return outcome
        },
      }),
    })
    const { base, as, operator } = workspace
    const documentIds: string[] = []
    for (const text of ['One.', 'Two.', 'Three.']) documentIds.push(await ingest(as('ada'), base, { text }))
    const isTrash = line.includes('/trash/')
    if (isTrash) for (const documentId of documentIds) await remove(workspace, documentId)
    const entryIds = (await entries(operator, base)).map(({ entryId }) => entryId)
    const keys = (await operator(`GET ${workspace.workspace}/api-keys`)).body.items as { keyId: string }[]
    interruption = () => operator(`DELETE ${workspace.workspace}/api-keys/${keys[0]!.keyId}`)
    const body = isTrash ? { entryIds } : { documentIds, ...fields }
    const answer = await as('ada')(line.replace('BASE', base), body)
    expect(interruption).toBeUndefined()
    expect(answer).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } })
    expect((await operator(`GET ${base}/documents`)).body.items).toHaveLength(documentsLeft!)
    expect(await entries(operator, base)).toHaveLength(entriesLeft!)
  })
})
