import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { RowStore } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { waitUntil } from '../harness/runtime.ts'
import { codeOf, hitsOf, itemsOf, type Send } from './principal-requests.ts'
import { ingest, openRestrictedWorkspace } from './restricted-workspace.ts'

test('a batch that overwrites by file name does not touch a hidden document', async () => {
  const { as, base } = await openRestrictedWorkspace()
  const [alice, bob] = [as('alice'), as('bob')]
  const hidden = await ingest(bob, base, { text: 'A turbine of bob.', sourceFilename: 'a.md' })
  const mine = await ingest(alice, base, { text: 'A turbine of alice.', sourceFilename: 'a.md' })
  const sendLine = async (line: object) => {
    const named = { sourceFilename: 'a.md', overwriteOnNameConflict: true, ...line }
    const media = { 'content-type': 'application/x-ndjson' }
    return (await alice(`POST ${base}/ingest/batch`, named, media)).text
  }
  for (const line of [{ text: 'A new turbine.' }, { text: 'A turbine of bob.', visibleTo: ['alice'] }]) {
    const outcome = await sendLine(line)
    expect(JSON.parse(outcome)).toMatchObject({ line: 1, status: 201 })
    expect(outcome).not.toContain(hidden)
  }
  expect((await bob(`GET ${base}/documents/${hidden}/chunks`)).body).toMatchObject([
    { text: 'A turbine of bob.' },
  ])
  expect((await alice(`GET ${base}/documents/${mine}`)).status).toBe(404)
})

test('a stream of a job ends when its document is hidden, and the job stores the chunks hidden', async () => {
  let resumeJob = () => {}
  const held = new Promise<void>(resolve => {
    resumeJob = resolve
  })
  const opened = await openRestrictedWorkspace({
    content: store => ({
      ...store,
      async write(changes, rows) {
        if (changes.some(({ op }) => op === 'upsert')) await held
        return store.write(changes, rows)
      },
    }),
  })
  const { as, base, workspace, follow } = opened
  const [alice, bob] = [as('alice'), as('bob')]
  const body = { text: 'A turbine of bob.', visibleTo: ['alice', 'bob'] }
  const made = (await bob(`POST ${base}/ingest?async=true`, body)).body as {
    job: { jobId: string }
    document: { documentId: string }
  }
  const path = `${workspace}/jobs/${made.job.jobId}/events`
  const events: string[] = []
  const reading = (async () => {
    for await (const { event } of follow('alice', path)) events.push(event)
  })()
  await waitUntil(() => events.length > 0)
  const document = `${base}/documents/${made.document.documentId}`
  expect((await bob(`PATCH ${document}`, { visibleTo: ['bob'] })).status).toBe(200)
  await reading
  expect(events).not.toContain('done')
  resumeJob()
  const last: object[] = []
  for await (const { event, data } of follow('bob', path)) if (event === 'done') last.push(data)
  expect(last).toEqual([{ status: 'succeeded' }])
  const hitIds = async (send: typeof alice) =>
    hitsOf(await send(`POST ${base}/search`, { text: 'turbine' })).map(({ id }) => id)
  expect(await hitIds(bob)).toHaveLength(1)
  expect(await hitIds(alice)).toEqual([])
})

test('a knowledge base with a policy is renamed only with manage:access', async () => {
  const { base, as, operator } = await openRestrictedWorkspace()
  expect((await as('alice')(`POST ${base}/rename`, { name: 'second' })).status).toBe(200)
  await operator(`PATCH ${base}`, { policyDsl: "status = 'ready'", policyEnabled: true })
  const refused = await as('alice')(`POST ${base}/rename`, { name: 'third' })
  expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden'])
  expect((await operator(`POST ${base}/rename`, { name: 'third' })).status).toBe(200)
})

describe('an ingest does not replace a hidden record that has the ID of a chunk', () => {
  const documentId = '11111111-1111-4111-8111-111111111111'

  async function openWithRecord() {
    const opened = await openRestrictedWorkspace()
    const bob = opened.as('bob')
    const record = { id: `${documentId}:0`, text: 'A turbine record of bob.', visibleTo: ['bob'] }
    const stored = await opened.operator(`POST ${opened.base}/records`, { records: [record] })
    expect(stored.status).toBe(200)
    const textsOfBob = async () =>
      hitsOf(await bob(`POST ${opened.base}/search`, { text: 'turbine' })).map(
        ({ payload }) => payload.chunkText,
      )
    return { ...opened, alice: opened.as('alice'), textsOfBob }
  }

  test('immediately', async () => {
    const { base, alice, textsOfBob } = await openWithRecord()
    const refused = await alice(`POST ${base}/ingest`, { documentId, text: 'A turbine of alice.' })
    expect([refused.status, codeOf(refused)]).toEqual([409, 'conflict'])
    expect(itemsOf(await alice(`GET ${base}/documents`))).toEqual([])
    expect(await textsOfBob()).toEqual(['A turbine record of bob.'])
  })

  test('in a job', async () => {
    const { wb, workspace, base, alice, textsOfBob } = await openWithRecord()
    await alice(`POST ${base}/ingest?async=true`, { documentId, text: 'A turbine of alice.' })
    await wb.settle()
    expect(itemsOf(await alice(`GET ${workspace}/jobs`))).toMatchObject([{ status: 'failed' }])
    expect(await textsOfBob()).toEqual(['A turbine record of bob.'])
  })
})

describe('a document of another owner needs manage:access, because it would take the place of their own', () => {
  const attributed = {
    text: 'The salaries.',
    sourceFilename: 'a.md',
    ownerPrincipalId: 'bob',
    visibleTo: ['*'],
  }

  test.each(['ingest', 'ingest?async=true', 'documents'])('in POST %s', async path => {
    const { base, as, operator } = await openRestrictedWorkspace()
    const [alice, bob] = [as('alice'), as('bob')]
    const { text, ...fields } = attributed
    const body = path === 'documents' ? fields : attributed
    for (const ownerPrincipalId of ['bob', null]) {
      const refused = await alice(`POST ${base}/${path}`, { ...body, ownerPrincipalId })
      expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden'])
    }
    expect(itemsOf(await bob(`GET ${base}/documents`))).toEqual([])
    expect((await alice(`POST ${base}/${path}`, { ...body, ownerPrincipalId: 'alice' })).status).toBeLessThan(
      300,
    )
    expect((await operator(`POST ${base}/${path}`, body)).status).toBeLessThan(300)
  })

  test('in a line of a batch and in an upload', async () => {
    const { base, as } = await openRestrictedWorkspace()
    const media = { 'content-type': 'application/x-ndjson' }
    const { text } = await as('alice')(`POST ${base}/ingest/batch`, attributed, media)
    expect(JSON.parse(text)).toMatchObject({ line: 1, status: 403 })
    const form = new FormData()
    form.append('file', new File(['The salaries.'], 'a.md'))
    form.append('ownerPrincipalId', 'bob')
    expect(codeOf(await as('alice')(`POST ${base}/ingest/file`, form))).toBe('forbidden')
    expect(itemsOf(await as('bob')(`GET ${base}/documents`))).toEqual([])
  })

  test('in PATCH, unless the owner stays the same', async () => {
    const { base, as } = await openRestrictedWorkspace()
    const [alice, bob] = [as('alice'), as('bob')]
    const shared = await ingest(bob, base, { text: 'The salaries.', visibleTo: ['*'] })
    const change = (ownerPrincipalId: string | null) =>
      alice(`PATCH ${base}/documents/${shared}`, { ownerPrincipalId })
    expect((await change('bob')).status).toBe(200)
    expect(codeOf(await change(null))).toBe('forbidden')
    expect(codeOf(await change('alice'))).toBe('forbidden')
  })
})

test('a file name is recognized no matter how many hidden documents have it', async () => {
  let rows!: RowStore
  const { base, workspace, knowledgeBaseId, as } = await openRestrictedWorkspace({
    rows: store => {
      rows = store
      return store
    },
  })
  const [alice, bob] = [as('alice'), as('bob')]
  const sourceFilename = 'popular.md'
  await bob(`POST ${base}/documents`, { sourceFilename })
  const workspaceId = workspace.split('/').at(-1)!
  const [hidden] = await rows.list(tables.documents, {
    index: 'byFilename',
    prefix: [workspaceId, knowledgeBaseId, sourceFilename],
    limit: 1,
  })
  const copies = Array.from({ length: 1_000 }, () => ({ ...hidden!.row, documentId: randomUUID() }))
  await rows.atomic(copies.map(row => ({ op: 'insert', table: tables.documents, row })))
  await ingest(alice, base, { text: 'First text.', sourceFilename })
  const second = await alice(`POST ${base}/ingest`, { text: 'Second text.', sourceFilename })
  expect([second.status, second.body.outcome]).toEqual([200, 'name_conflict'])
  await ingest(alice, base, { text: 'Third text.', sourceFilename, overwriteOnNameConflict: true })
  expect(itemsOf(await alice(`GET ${base}/documents`))).toHaveLength(1)
})

describe('the file name and the synced folder of a visible document of another principal', () => {
  test.each([{ sourceFilename: 'b.md' }, { metadata: { syncFolder: 'docs' } }])(
    'cannot be changed without manage:access, but by its owner: %j',
    async fields => {
      const { base, as, operator } = await openRestrictedWorkspace()
      const [alice, bob] = [as('alice'), as('bob')]
      const shown = { text: 'A turbine.', sourceFilename: 'a.md', visibleTo: ['*'] }
      const document = `${base}/documents/${await ingest(bob, base, shown)}`
      const refused = await alice(`PATCH ${document}`, fields)
      expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden'])
      expect((await alice(`PATCH ${document}`, { metadata: { team: 'red' } })).status).toBe(200)
      for (const [send, value] of [
        [bob, fields],
        [operator, { sourceFilename: 'c.md' }],
      ] as const)
        expect((await send(`PATCH ${document}`, value)).status).toBe(200)
    },
  )
})

test('a list of own documents contains those of the caller, and all documents without row-level access', async () => {
  const { workspace, base, as, operator } = await openRestrictedWorkspace()
  for (const name of ['alice', 'bob'])
    await ingest(as(name), base, { text: name, sourceFilename: `${name}.md`, visibleTo: ['*'] })
  const names = async (send: Send, query: string) =>
    itemsOf(await send(`GET ${base}/documents${query}`)).map(({ sourceFilename }) => sourceFilename)
  expect(await names(as('alice'), '?own=true')).toEqual(['alice.md'])
  expect(await names(as('alice'), '')).toEqual(['alice.md', 'bob.md'])
  expect(await names(operator, '?own=true')).toEqual([])
  await operator(`PATCH ${workspace}`, { rlacEnabled: false })
  expect(await names(as('alice'), '?own=true')).toEqual(['alice.md', 'bob.md'])
})
