import { describe, expect, test } from 'vitest'
import { open, type TestResponse, type TestRuntimeOptions } from '../harness/runtime.ts'

type Row = Readonly<Record<string, unknown>>

const collection = '/api/v1/workspaces'
const missing = '00000000-0000-4000-8000-000000000000'

/**
 * A workspace with row-level access, one knowledge base, and four documents: `public` is visible to everyone, `alice` and
 * `bob` to their owners, and `admin` to administrators.
 */
async function openRestricted(policy: object = {}, options: TestRuntimeOptions = {}) {
  const wb = await open(options)
  const made = await wb.send(`POST ${collection}`, { name: 'w', kind: 'local', rlacEnabled: true })
  const workspace = `${collection}/${made.body.workspaceId}`
  const created = await wb.send(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
  const base = `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`
  const as = (principal: string) => (line: string, body?: unknown) =>
    wb.send(line, body, { 'x-view-as-principal': principal })
  await wb.send(`POST ${workspace}/principals`, { principalId: 'root', role: 'admin' })
  const ids: Record<string, string> = {}
  const visibility = { public: ['*'], alice: ['alice'], bob: ['bob'], admin: null }
  for (const [name, visibleTo] of Object.entries(visibility)) {
    const text = `The turbine report of ${name} mentions the zeppelin${name} contract.`
    const { body, status } = await as('root')(`POST ${base}/ingest`, {
      text,
      sourceFilename: `${name}.md`,
      visibleTo,
      ownerPrincipalId: name,
    })
    expect(status).toBe(201)
    ids[name] = (body.document as { documentId: string }).documentId
  }
  await wb.send(`PATCH ${base}`, policy)
  return { wb, workspace, base, as, ids, anonymous: wb.send }
}

/** Options of a runtime that runs `before.contentWrite` once, before the next write of content. */
function interruptible() {
  const before: { contentWrite?: (() => Promise<unknown>) | undefined } = {}
  const content: TestRuntimeOptions['content'] = store => ({
    ...store,
    async write(...unit) {
      const run = before.contentWrite
      before.contentWrite = undefined
      await run?.()
      return store.write(...unit)
    },
  })
  return { before, content }
}

const itemsOf = ({ body }: TestResponse) => body.items as Row[]
const codeOf = ({ body }: TestResponse) => (body.error as Row | undefined)?.code
const namesOf = (rows: readonly Row[]) =>
  rows.map(row =>
    String(row.sourceFilename ?? (row.payload as Row).chunkText).replace(
      /^.*report of (\S+) .*$|\.md$/,
      '$1',
    ),
  )

describe('a principal sees only its documents', () => {
  test('by list, count of pages, document, chunks and each kind of search [S7.3-15]', async () => {
    const { base, as, ids } = await openRestricted()
    const alice = as('alice')
    const list = await alice(`GET ${base}/documents?limit=1`)
    expect(namesOf(itemsOf(list))).toEqual(['public'])
    const next = await alice(`GET ${base}/documents?limit=1&cursor=${list.body.nextCursor}`)
    expect(namesOf(itemsOf(next))).toEqual(['alice'])
    expect(next.body.nextCursor).toBeNull()
    for (const name of ['bob', 'admin']) {
      const path = `${base}/documents/${ids[name]}`
      const [hidden, absent] = [await alice(`GET ${path}`), await alice(`GET ${base}/documents/${missing}`)]
      expect([hidden.status, codeOf(hidden)]).toEqual([404, 'document_not_found'])
      expect(hidden.text.length).toBe(absent.text.length)
      expect((await alice(`GET ${path}/chunks`)).status).toBe(404)
    }
    expect((await alice(`GET ${base}/documents/${ids.alice}/chunks`)).body).toHaveLength(1)
    for (const mode of [{}, { hybrid: false }, { hybrid: true, lexicalWeight: 1 }, { rerank: true }]) {
      const { body } = await alice(`POST ${base}/search`, {
        text: 'turbine report zeppelinbob',
        topK: 9,
        ...mode,
      })
      expect(namesOf(body as unknown as Row[]).sort()).toEqual(['alice', 'public'])
    }
    const filtered = await alice(`POST ${base}/search`, { text: 'turbine', filter: { visible_to: 'bob' } })
    expect(filtered.body).toEqual([])
    const payloads = (await alice(`POST ${base}/search`, { text: 'turbine' })).body as unknown as Row[]
    for (const { payload } of payloads) expect(Object.keys(payload as Row)).not.toContain('$owner')
  })

  test('S7.3-policy_principal_required: an administrator sees all documents, and a caller without a principal none', async () => {
    const { base, as, ids, anonymous } = await openRestricted()
    expect(itemsOf(await as('root')(`GET ${base}/documents`))).toHaveLength(4)
    expect((await as('root')(`POST ${base}/search`, { text: 'turbine' })).body).toHaveLength(4)
    for (const line of [
      `GET ${base}/documents`,
      `GET ${base}/documents/${ids.public}`,
      `GET ${base}/documents/${ids.public}/chunks`,
    ]) {
      const answer = await anonymous(line)
      expect([answer.status, codeOf(answer)]).toEqual([401, 'policy_principal_required'])
    }
    expect(codeOf(await anonymous(`POST ${base}/search`, { text: 'turbine' }))).toBe(
      'policy_principal_required',
    )
    const removal = await anonymous(`DELETE ${base}/documents/${ids.public}`)
    expect([removal.status, codeOf(removal)]).toEqual([403, 'policy_denied'])
  })

  test('in the counts of the knowledge base', async () => {
    const { base, as, anonymous } = await openRestricted()
    expect((await as('root')(`GET ${base}`)).body.embedder).toMatchObject({ chunks: 4 })
    expect((await as('alice')(`GET ${base}`)).body).not.toHaveProperty('embedder')
    expect(codeOf(await as('alice')(`GET ${base}/stats`))).toBe('forbidden')
    expect((await as('root')(`GET ${base}/stats`)).body.documents).toBe(4)
    expect(codeOf(await anonymous(`GET ${base}/stats`))).toBe('policy_principal_required')
  })

  test('in the outcome of an upload', async () => {
    const { base, as } = await openRestricted()
    const form = new FormData()
    const text = 'The turbine report of bob mentions the zeppelinbob contract.'
    form.append('file', new File([text], 'bob.md'))
    form.append('ownerPrincipalId', 'bob')
    expect((await as('alice')(`POST ${base}/ingest/file`, form)).status).toBe(201)
    expect((await as('root')(`GET ${base}/documents`)).body.items).toHaveLength(5)
  })

  test('scores are the same whether a hidden document exists or not [security rule 4]', async () => {
    const { base, as, ids } = await openRestricted()
    const search = async () =>
      (await as('alice')(`POST ${base}/search`, { text: 'turbine zeppelin contract' })).text
    const before = await search()
    await as('root')(`DELETE ${base}/documents/${ids.bob}`)
    await as('root')(`DELETE ${base}/documents/${ids.admin}`)
    expect(await search()).toBe(before)
  })
})

test('the built-in embedder learns nothing from hidden documents [security rule 4]', async () => {
  const scoresWith = async (hidden: readonly string[]) => {
    const { wb, base, as } = await openRestricted()
    const ingest = (text: string, visibleTo: string[]) =>
      as('root')(`POST ${base}/ingest`, { text, visibleTo })
    for (let n = 0; n < 12; n++) await ingest(`A public text about wings, flow and number${n}.`, ['*'])
    for (const text of hidden) await ingest(text, ['bob'])
    await wb.settle()
    const shown = await as('root')(`GET ${base}`)
    expect(shown.body.embedder).toMatchObject({ state: 'ready' })
    const search = { text: 'secretword of wings', hybrid: false, topK: 20 }
    const hits = (await as('alice')(`POST ${base}/search`, search)).body as unknown as Row[]
    return hits.map(({ score }) => score)
  }
  const scores = await scoresWith([])
  expect(scores).toHaveLength(14)
  expect(await scoresWith(['A secretword of wings.', 'Another secretword, with flow.'])).toEqual(scores)
})

describe('a principal changes only its documents', () => {
  test('S7.3-policy_denied: and an error does not reveal whether a hidden document exists', async () => {
    const { base, as, ids } = await openRestricted()
    const alice = as('alice')
    for (const id of [ids.bob, ids.admin, missing]) {
      const path = `${base}/documents/${id}`
      for (const answer of [
        await alice(`PATCH ${path}`, { visibleTo: ['alice'] }),
        await alice(`DELETE ${path}`),
      ])
        expect([answer.status, codeOf(answer)]).toEqual([403, 'policy_denied'])
    }
    const bulk = await alice(`POST ${base}/documents/bulk-delete`, {
      documentIds: [ids.bob, missing, ids.alice],
    })
    expect(bulk.body.deleted).toEqual([ids.alice])
    expect((bulk.body.failed as Row[]).map(({ code }) => code)).toEqual(['policy_denied', 'policy_denied'])
    expect(itemsOf(await as('root')(`GET ${base}/documents`))).toHaveLength(3)
  })

  test('and an overwrite by file name or text does not touch or mention a hidden document', async () => {
    const { base, as, ids } = await openRestricted()
    const text = 'The turbine report of bob mentions the zeppelinbob contract.'
    const same = await as('alice')(`POST ${base}/ingest`, { text })
    expect(same.status).toBe(201)
    const named = { text: 'Another text.', sourceFilename: 'bob.md', overwriteOnNameConflict: true }
    expect((await as('alice')(`POST ${base}/ingest`, named)).status).toBe(201)
    const queued = await as('alice')(`POST ${base}/ingest?async=true`, { ...named, text: 'A third text.' })
    expect(queued.status).toBe(202)
    expect((await as('bob')(`GET ${base}/documents/${ids.bob}`)).status).toBe(200)
  })

  test('and an overwrite by file name does not delete a document that was hidden in the meantime', async () => {
    const { before, content } = interruptible()
    const { base, as, ids } = await openRestricted({}, { content })
    before.contentWrite = () => as('root')(`PATCH ${base}/documents/${ids.alice}`, { visibleTo: ['root'] })
    const named = { text: 'Another text.', sourceFilename: 'alice.md', overwriteOnNameConflict: true }
    expect((await as('alice')(`POST ${base}/ingest`, named)).status).toBe(201)
    expect((await as('root')(`GET ${base}/documents/${ids.alice}`)).status).toBe(200)
  })

  test('and a change does not show the chunks of a document that was hidden in the meantime', async () => {
    const { before, content } = interruptible()
    const { base, as, ids } = await openRestricted({}, { content })
    const path = `${base}/documents/${ids.public}`
    before.contentWrite = () => as('root')(`PATCH ${path}`, { visibleTo: ['root'] })
    expect(codeOf(await as('alice')(`PATCH ${path}`, { metadata: { topic: 'gas' } }))).toBe('policy_denied')
    const hits = (await as('alice')(`POST ${base}/search`, { text: 'turbine' })).body as unknown as Row[]
    expect(namesOf(hits)).toEqual(['alice'])
  })

  test('and the second ingest of a text is a duplicate, whether a hidden document has the text or not', async () => {
    const { base, as } = await openRestricted()
    const text = 'The turbine report of bob mentions the zeppelinbob contract.'
    const copy = { text, visibleTo: ['alice'], ownerPrincipalId: 'bob' }
    const ingest = async () => (await as('alice')(`POST ${base}/ingest`, copy)).body.document as Row
    expect((await ingest()).documentId).toBe((await ingest()).documentId)
  })

  test('and a file name is free again after the document got another owner', async () => {
    const { base, as, ids } = await openRestricted()
    await as('alice')(`PATCH ${base}/documents/${ids.alice}`, { ownerPrincipalId: 'bob' })
    const named = { text: 'Another text.', sourceFilename: 'alice.md' }
    expect((await as('alice')(`POST ${base}/ingest`, named)).status).toBe(201)
  })

  test('a new document belongs to its principal unless the request says otherwise', async () => {
    const { base, as } = await openRestricted()
    const made = async (fields: object) => (await as('alice')(`POST ${base}/documents`, fields)).body as Row
    expect(await made({})).toMatchObject({ visibleTo: ['alice'], ownerPrincipalId: 'alice' })
    expect(await made({ visibleTo: ['*'] })).toMatchObject({ visibleTo: ['*'], ownerPrincipalId: 'alice' })
    expect(await made({ visibleTo: null })).toMatchObject({ visibleTo: null, ownerPrincipalId: 'alice' })
  })

  test('records that were stored directly are protected, too', async () => {
    const { base, as } = await openRestricted()
    const record = { id: 'r', text: 'A turbine record.' }
    expect((await as('bob')(`POST ${base}/records`, { records: [record] })).status).toBe(200)
    const taken = await as('alice')(`POST ${base}/records`, { records: [record] })
    expect([taken.status, codeOf(taken)]).toEqual([403, 'policy_denied'])
    expect((await as('alice')(`DELETE ${base}/records/r`)).body).toEqual({ deleted: false })
    const seen = async (principal: string) =>
      ((await as(principal)(`POST ${base}/search`, { text: 'turbine record' })).body as unknown as Row[]).map(
        hit => hit.id,
      )
    expect(await seen('alice')).not.toContain('r')
    expect(await seen('bob')).toContain('r')
    expect((await as('bob')(`DELETE ${base}/records/r`)).body).toEqual({ deleted: true })
  })
})

describe('a policy of a knowledge base', () => {
  test('replaces the built-in one, and applies to documents and chunks alike', async () => {
    const { base, as } = await openRestricted({
      policyEnabled: true,
      policyDsl: "owner_principal_id = current_principal_id() OR source_filename = 'admin.md'",
    })
    for (const [principal, names] of Object.entries({ bob: ['bob', 'admin'], root: ['admin'] })) {
      expect(namesOf(itemsOf(await as(principal)(`GET ${base}/documents`)))).toEqual(names)
      const { body } = await as(principal)(`POST ${base}/search`, { text: 'turbine', topK: 9 })
      expect(namesOf(body as unknown as Row[]).sort()).toEqual([...names].sort())
    }
  })

  test('acts on the next request', async () => {
    const { wb, base, as } = await openRestricted()
    expect(itemsOf(await as('alice')(`GET ${base}/documents`))).toHaveLength(2)
    await wb.send(`PATCH ${base}`, { policyEnabled: true, policyDsl: "'bob' = ANY(visible_to)" })
    expect(namesOf(itemsOf(await as('alice')(`GET ${base}/documents`)))).toEqual(['bob'])
    await wb.send(`PATCH ${base}`, { policyEnabled: false })
    expect(namesOf(itemsOf(await as('alice')(`GET ${base}/documents`)))).toEqual(['public', 'alice'])
  })
})

describe('the header x-view-as-principal', () => {
  test('is ignored unless the key has the scope manage:access', async () => {
    const wb = await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } } })
    const made = await wb.sendAsOperator(`POST ${collection}`, {
      name: 'w',
      kind: 'local',
      rlacEnabled: true,
    })
    const workspace = `${collection}/${made.body.workspaceId}`
    const created = await wb.sendAsOperator(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
    const documents = `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}/documents`
    await wb.sendAsOperator(`POST ${documents}`, { sourceFilename: 'bob.md', visibleTo: ['bob'] })
    const seenAsBob = async (scopes: readonly string[]) => {
      const { body } = await wb.sendAsOperator(`POST ${workspace}/api-keys`, { label: 'key', scopes })
      const headers = { authorization: `Bearer ${body.plaintext}`, 'x-view-as-principal': 'bob' }
      return itemsOf(await wb.send(`GET ${documents}`, undefined, headers)).length
    }
    expect(await seenAsBob(['read', 'write'])).toBe(0)
    expect(await seenAsBob(['read', 'manage:access'])).toBe(1)
  })
})

describe('switching row-level access on', () => {
  test('keeps all rows visible to everyone who could see them, and creates an administrator', async () => {
    const wb = await open()
    const made = await wb.send(`POST ${collection}`, { name: 'w', kind: 'local' })
    const workspace = `${collection}/${made.body.workspaceId}`
    const created = await wb.send(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
    const base = `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`
    await wb.send(`POST ${base}/ingest`, { text: 'An open turbine.' })
    await wb.send(`POST ${base}/ingest`, { text: 'A turbine of bob.', visibleTo: ['bob'] })
    await wb.send(`POST ${base}/records`, { records: [{ id: 'r', text: 'A turbine record.' }] })
    expect((await wb.send(`PATCH ${workspace}`, { rlacEnabled: true })).body.rlacEnabled).toBe(true)
    expect(itemsOf(await wb.send(`GET ${workspace}/principals`))).toMatchObject([
      { principalId: 'admin', attributes: { admin: 'true' } },
    ])
    const seen = async (principal: string) => {
      const headers = { 'x-view-as-principal': principal }
      const documents = itemsOf(await wb.send(`GET ${base}/documents`, undefined, headers))
      const hits = (await wb.send(`POST ${base}/search`, { text: 'turbine' }, headers))
        .body as unknown as Row[]
      return [documents.length, hits.length]
    }
    expect(await seen('alice')).toEqual([1, 2])
    expect(await seen('bob')).toEqual([2, 3])
    expect(await seen('admin')).toEqual([2, 3])
  })
})

describe('jobs', () => {
  test('are visible to those who can see their document', async () => {
    const { workspace, base, as } = await openRestricted()
    const { body } = await as('bob')(`POST ${base}/ingest?async=true`, { text: 'A queued text.' })
    const { jobId } = body.job as { jobId: string }
    expect(itemsOf(await as('bob')(`GET ${workspace}/jobs`))).toHaveLength(1)
    expect(itemsOf(await as('alice')(`GET ${workspace}/jobs`))).toEqual([])
    for (const line of [`GET ${workspace}/jobs/${jobId}`, `POST ${workspace}/jobs/${jobId}/cancel`])
      expect((await as('alice')(line)).status).toBe(404)
    expect((await as('bob')(`GET ${workspace}/jobs/${jobId}`)).status).toBe(200)
  })

  test('a page has no cursor if only hidden jobs follow, and a caller without a principal learns nothing', async () => {
    const { workspace, base, as, anonymous } = await openRestricted()
    for (const line of [`GET ${workspace}/jobs`, `GET ${workspace}/jobs/${missing}`])
      expect(codeOf(await anonymous(line))).toBe('policy_principal_required')
    for (const principal of ['bob', 'alice'])
      await as(principal)(`POST ${base}/ingest?async=true`, { text: `A text of ${principal}.` })
    const page = await as('alice')(`GET ${workspace}/jobs?limit=1`)
    expect(itemsOf(page)).toHaveLength(1)
    expect(page.body.nextCursor).toBeNull()
    expect((await as('root')(`GET ${workspace}/jobs?limit=1`)).body.nextCursor).not.toBeNull()
  })
})

test('a search of all knowledge bases names only documents with the same text that the caller may see', async () => {
  const { workspace, as } = await openRestricted()
  const text = 'The ornithopter folds its wings.'
  const bases: string[] = []
  for (const name of ['first', 'second', 'third']) {
    const made = await as('root')(`POST ${workspace}/knowledge-bases`, { name })
    bases.push(String(made.body.knowledgeBaseId))
  }
  const search = async (principal: string) => {
    const question = { text: 'ornithopter', knowledgeBaseIds: bases }
    return (await as(principal)(`POST ${workspace}/search`, question)).body as unknown as {
      knowledgeBaseId: string
      alsoIn?: { knowledgeBaseId: string; documentId: string }[]
    }[]
  }
  const documents: Record<string, string> = {}
  for (const id of bases) {
    const { body } = await as('root')(`POST ${workspace}/knowledge-bases/${id}/ingest`, { text })
    documents[id] = (body.document as { documentId: string }).documentId
  }
  for (let visible = 0; visible < 2 ** bases.length; visible++) {
    const expected = bases.filter((_, at) => visible & (1 << at))
    for (const id of bases) {
      const visibleTo = expected.includes(id) ? ['alice', 'bob'] : ['bob']
      const path = `PATCH ${workspace}/knowledge-bases/${id}/documents/${documents[id]}`
      expect((await as('root')(path, { visibleTo })).status).toBe(200)
    }
    const hits = await search('alice')
    const found = hits.flatMap(({ knowledgeBaseId, alsoIn = [] }) => [
      knowledgeBaseId,
      ...alsoIn.map(other => other.knowledgeBaseId),
    ])
    expect([hits.length, found.toSorted()]).toEqual([Math.min(1, expected.length), expected.toSorted()])
    for (const { alsoIn } of hits)
      for (const other of alsoIn ?? []) expect(other.documentId).toBe(documents[other.knowledgeBaseId])
    expect((await search('bob'))[0]!.alsoIn).toHaveLength(2)
  }
})
