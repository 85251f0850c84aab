import { describe, expect, onTestFinished, test } from 'vitest'
import type { Write } from '../../src/storage/rows.ts'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import {
  codeOf,
  idsFound,
  ingest,
  itemsOf,
  openRestrictedWorkspace,
  type Row,
  workspacesPath,
} from '../harness/rows.ts'
import { open, type TestRuntimeOptions } from '../harness/runtime.ts'

interface Interruption {
  /** Runs once, before the next write for which the condition holds. */
  run?: (() => Promise<unknown>) | undefined
}

/** Options of a runtime that is interrupted before a write of content. */
function beforeContentWrite(interruption: Interruption): TestRuntimeOptions {
  return {
    content: store => ({
      ...store,
      async write(...unit) {
        const { run } = interruption
        interruption.run = undefined
        await run?.()
        return store.write(...unit)
      },
    }),
  }
}

/** Options of a runtime that is interrupted before it replaces a document. */
function beforeDocumentChange(interruption: Interruption): TestRuntimeOptions {
  const changesDocument = (write: Write) => write.op === 'replace' && write.table.name === 'documents'
  return {
    rows: store => ({
      ...store,
      async atomic(writes) {
        if (writes.some(changesDocument)) {
          const { run } = interruption
          interruption.run = undefined
          await run?.()
        }
        return store.atomic(writes)
      },
    }),
  }
}

describe('turning row-level access off and on again', () => {
  test('keeps documents and records hidden that were hidden before', async () => {
    const { wb, workspace, base, as } = await openRestrictedWorkspace()
    const alice = as('alice')
    const hidden = await ingest(alice, base, { text: 'A hidden turbine.', visibleTo: null })
    await alice(`POST ${base}/documents`, { sourceFilename: 'hidden.md', visibleTo: null })
    const restricted = await ingest(alice, base, { text: 'A restricted turbine.' })
    await alice(`PATCH ${restricted}`, { visibleTo: null })
    const queued = await alice(`POST ${base}/ingest?async=true`, { text: 'A late turbine.', visibleTo: null })
    expect(queued.status).toBe(202)
    await wb.settle()
    const record = { id: 'r', text: 'A turbine record.', visibleTo: null }
    await alice(`POST ${base}/records`, { records: [record] })
    await wb.send(`PATCH ${workspace}`, { rlacEnabled: false })
    await ingest(wb.send, base, { text: 'An open turbine.', sourceFilename: 'open.md' })
    await wb.send(`PATCH ${workspace}`, { rlacEnabled: true })
    const shown = itemsOf(await alice(`GET ${base}/documents`))
    expect(shown.map(({ sourceFilename }) => sourceFilename)).toEqual(['open.md'])
    expect(await idsFound(alice, base, 'turbine')).toHaveLength(1)
    expect((await as('root')(`GET ${hidden}`)).body.visibleTo).toBeNull()
    expect(await idsFound(as('root'), base, 'turbine')).toHaveLength(5)
  })

  test('does not overwrite or restore records that other requests change at the same time', async () => {
    const interruption: Interruption = {}
    const { wb, workspace, base, as } = await openRestrictedWorkspace(beforeContentWrite(interruption))
    await wb.send(`PATCH ${workspace}`, { rlacEnabled: false })
    const records = ['changed', 'deleted'].map(id => ({ id, text: 'An old turbine record.' }))
    await wb.send(`POST ${base}/records`, { records })
    interruption.run = async () => {
      await wb.send(`POST ${base}/records`, { records: [{ id: 'changed', text: 'A new zeppelin record.' }] })
      await wb.send(`DELETE ${base}/records/deleted`)
    }
    expect((await wb.send(`PATCH ${workspace}`, { rlacEnabled: true })).status).toBe(200)
    expect(await idsFound(as('alice'), base, 'zeppelin')).toEqual(['changed'])
    const { body } = await as('alice')(`POST ${base}/search`, { text: 'record' })
    expect((body as unknown as Row[]).map(hit => (hit.payload as Row).chunkText)).toEqual([
      'A new zeppelin record.',
    ])
  })
})

test('a change does not overwrite a hidden document that replaced the deleted one under the same ID', async () => {
  const interruption: Interruption = {}
  const { base, as } = await openRestrictedWorkspace(beforeDocumentChange(interruption))
  const documentId = '00000000-0000-4000-8000-000000000001'
  const create = (principal: string, fields: object) =>
    as(principal)(`POST ${base}/documents`, { documentId, ...fields })
  expect((await create('alice', { sourceDocId: 'of alice' })).status).toBe(201)
  interruption.run = async () => {
    await as('alice')(`DELETE ${base}/documents/${documentId}?permanently=true`)
    expect((await create('bob', { sourceDocId: 'of bob' })).status).toBe(201)
  }
  const change = await as('alice')(`PATCH ${base}/documents/${documentId}`, { sourceDocId: 'changed' })
  expect([change.status, codeOf(change)]).toEqual([403, 'policy_denied'])
  expect((await as('bob')(`GET ${base}/documents/${documentId}`)).body).toMatchObject({
    sourceDocId: 'of bob',
    visibleTo: ['bob'],
  })
})

describe('a policy that changes while a text is embedded', () => {
  /** Opens a workspace with an embedding provider. A policy can hide all rows during its next request. */
  async function openWithProvider() {
    const provider = await startEmbeddingServer(3)
    onTestFinished(() => provider.close())
    const opened = await openRestrictedWorkspace({
      async prepare(workspace, wb) {
        const service = {
          name: 'provider',
          provider: 'ollama',
          modelName: 'model',
          embeddingDimension: 3,
          endpointBaseUrl: provider.url,
        }
        const { body } = await wb.send(`POST ${workspace}/embedding-services`, service)
        return { embeddingServiceId: body.embeddingServiceId }
      },
    })
    const hideAll = () =>
      opened.wb.send(`PATCH ${opened.base}`, {
        policyEnabled: true,
        policyDsl: "'root' = current_principal_id()",
      })
    return { ...opened, hideDuringNextRequest: () => provider.script({ before: hideAll }) }
  }

  test('protects the documents that an ingest would replace', async () => {
    const { base, as, hideDuringNextRequest } = await openWithProvider()
    const named = { text: 'A turbine.', sourceFilename: 'a.md' }
    const path = await ingest(as('alice'), base, named)
    const body = { ...named, text: 'Another turbine.', overwriteOnNameConflict: true }
    hideDuringNextRequest()
    await as('alice')(`POST ${base}/ingest`, body)
    expect((await as('root')(`GET ${path}`)).status).toBe(200)
  })

  test('protects the records that an upsert would replace', async () => {
    const { base, as, hideDuringNextRequest } = await openWithProvider()
    const upsert = (text: string) => as('alice')(`POST ${base}/records`, { records: [{ id: 'r', text }] })
    await upsert('An old record.')
    hideDuringNextRequest()
    const reply = await upsert('A new record.')
    expect([reply.status, codeOf(reply)]).toEqual([403, 'policy_denied'])
    const { body } = await as('root')(`POST ${base}/search`, { text: 'record' })
    expect((body as unknown as Row[]).map(hit => (hit.payload as Row).chunkText)).toEqual(['An old record.'])
  })
})

test('two concurrent ingests of a file name do not reveal whether a hidden document has it', async () => {
  const outcomesWith = async (isTaken: boolean) => {
    const interruption: Interruption = {}
    const { base, as } = await openRestrictedWorkspace(beforeContentWrite(interruption))
    const send = (text: string, visibleTo: string | null = 'alice') =>
      as('alice')(`POST ${base}/ingest`, {
        text,
        sourceFilename: 'salaries.md',
        visibleTo: visibleTo && [visibleTo],
      })
    if (isTaken) await send('The salaries.', null)
    let second: Awaited<ReturnType<typeof send>> | undefined
    interruption.run = async () => {
      second = await send('Second text.')
    }
    const first = await send('First text.')
    return [first, second!].map(({ status, body }) => [status, body.outcome])
  }
  expect(await outcomesWith(true)).toEqual(await outcomesWith(false))
})

/** Opens a runtime in which each write of content waits for a change of a document, if the change does not wait for it. */
async function openWithCompetitor() {
  const competitor: { change?: () => Promise<unknown> } = {}
  const opened = await openRestrictedWorkspace({
    content: store => ({
      ...store,
      async write(...unit) {
        if (competitor.change) await Promise.race([competitor.change(), pause()])
        return store.write(...unit)
      },
    }),
  })
  const pause = async () => {
    for (let turn = 0; turn < 50; turn++) await opened.wb.send('GET /readyz')
  }
  return { ...opened, competitor }
}

test('a caller who keeps changing a document cannot prevent that it is hidden', async () => {
  const { base, as, competitor } = await openWithCompetitor()
  const path = await ingest(as('bob'), base, { text: 'A shared turbine.', visibleTo: ['bob', 'alice'] })
  let changes = 0
  competitor.change = () => as('alice')(`PATCH ${path}`, { fileType: `text/${changes++}` })
  expect((await as('bob')(`PATCH ${path}`, { visibleTo: ['bob'] })).status).toBe(200)
  expect(changes).toBeLessThan(10)
  expect((await as('alice')(`GET ${path}`)).status).toBe(404)
})

test('a caller who keeps changing a document cannot prevent row-level access', async () => {
  const { wb, workspace, base, as, competitor } = await openWithCompetitor()
  await wb.sendAsOperator(`PATCH ${workspace}`, { rlacEnabled: false })
  const path = await ingest(as('bob'), base, { text: 'An open turbine.' })
  let changes = 0
  competitor.change = () => as('alice')(`PATCH ${path}`, { fileType: `text/${changes++}` })
  const switched = wb.sendAsOperator(`PATCH ${workspace}`, { rlacEnabled: true })
  expect((await switched).status).toBe(200)
  expect(changes).toBeLessThan(10)
})

describe('an update of a long document', () => {
  /** A text with several hundred chunks. */
  const text = Array.from({ length: 600 }, (_, n) => `Turbine ${n}. ${'x '.repeat(40)}`).join('\n\n')

  /** Opens a workspace with a long document of bob, and calls `run` before each use of its content. */
  async function openWithLongDocument() {
    const content: { run?: (operation: 'read' | 'write') => unknown } = {}
    const opened = await openRestrictedWorkspace({
      content: store => ({
        ...store,
        async read(...query) {
          await content.run?.('read')
          return store.read(...query)
        },
        async write(...unit) {
          await content.run?.('write')
          return store.write(...unit)
        },
      }),
    })
    const { workspace, base, as } = opened
    for (const [principalId, team] of [
      ['bob', 'blue'],
      ['alice', 'red'],
    ])
      await as('root')(`POST ${workspace}/principals`, { principalId, attributes: { team } })
    await as('root')(`PATCH ${base}`, { policyDsl: 'team = $principal.team', policyEnabled: true })
    const chunker = { maxChars: 120, minChars: 1, overlapChars: 0 }
    const path = await ingest(as('bob'), base, { text, chunker, metadata: { team: 'blue' } })
    /** Returns true if alice can see the document, and checks that she can find its chunks only then. */
    const isVisibleToAlice = async () => {
      const isVisible = (await as('alice')(`GET ${path}`)).status === 200
      expect((await idsFound(as('alice'), base, 'turbine')).length > 0).toBe(isVisible)
      return isVisible
    }
    return { ...opened, content, path, isVisibleToAlice }
  }

  test('shows all chunks or none if the store fails at any time', async () => {
    const { as, content, path, isVisibleToAlice } = await openWithLongDocument()
    let status = 0
    for (let writes = 0; status !== 200; writes++) {
      let remaining = writes
      content.run = operation => {
        if (operation === 'write' && remaining-- === 0) throw new Error('the store failed')
      }
      status = (await as('bob')(`PATCH ${path}`, { metadata: { team: 'red' } })).status
      content.run = undefined
      expect(await isVisibleToAlice()).toBe(status === 200)
    }
  })

  test('changes nothing if the caller loses its access before the update is written', async () => {
    const { workspace, as, content, path, isVisibleToAlice } = await openWithLongDocument()
    content.run = () => {
      content.run = undefined
      return as('root')(`PATCH ${workspace}/principals/bob`, { attributes: { team: 'none' } })
    }
    const denied = await as('bob')(`PATCH ${path}`, { metadata: { team: 'red' } })
    expect([denied.status, codeOf(denied)]).toEqual([403, 'policy_denied'])
    expect(await isVisibleToAlice()).toBe(false)
  })
})

test('a document can be hidden although the knowledge base changes all the time', async () => {
  let change = async (): Promise<unknown> => undefined
  const { as, base } = await openRestrictedWorkspace({
    content: store => ({
      ...store,
      listing: {
        ...store.listing!,
        async listByDocument(...query) {
          await change()
          return store.listing!.listByDocument(...query)
        },
      },
    }),
  })
  const path = await ingest(as('bob'), base, { text: 'A turbine.', visibleTo: ['alice', 'bob'] })
  let changes = 0
  change = () => as('root')(`PATCH ${base}`, { description: String(changes++) })
  expect((await as('bob')(`PATCH ${path}`, { visibleTo: ['bob'] })).status).toBe(200)
  expect(changes).toBeGreaterThan(0)
  expect((await as('alice')(`GET ${path}`)).status).toBe(404)
})

describe('a request during which access is revoked', () => {
  const closed = { config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } } }

  /** Opens a workspace with a key of the editor bob, who sees all documents until `revocations` take that away. */
  async function openWithEditor(options: TestRuntimeOptions, { rlacEnabled = true } = {}) {
    const wb = await open({ ...closed, ...options })
    const root = wb.sendAsOperator
    const made = await root(`POST ${workspacesPath}`, { name: 'w', kind: 'local', rlacEnabled })
    const workspace = `${workspacesPath}/${made.body.workspaceId}`
    await root(`POST ${workspace}/principals`, { principalId: 'bob', attributes: { admin: 'true' } })
    const key = await root(`POST ${workspace}/api-keys`, {
      label: 'bob',
      scopes: ['read', 'write'],
      principalId: 'bob',
    })
    const created = await root(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
    const base = `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`
    await root(`PATCH ${base}`, { policyDsl: "$principal.admin = 'true'", policyEnabled: true })
    const headers = { authorization: `Bearer ${key.body.plaintext}` }
    const bob = (line: string, body?: unknown, more: Record<string, string> = {}) =>
      wb.send(line, body, { ...headers, ...more })
    const revocations = {
      policy: () => root(`PATCH ${base}`, { policyDsl: "$principal.admin = 'no'" }),
      attribute: () => root(`PATCH ${workspace}/principals/bob`, { attributes: {} }),
      'row-level access': () => root(`PATCH ${workspace}`, { rlacEnabled: true }),
      key: () => root(`DELETE ${workspace}/api-keys/${(key.body.key as Row).keyId}`),
    }
    return { wb, root, bob, workspace, base, revocations }
  }

  test.each(['policy', 'attribute', 'row-level access'] as const)(
    'keeps the knowledge base if the %s changes just before it is removed',
    async kind => {
      const interruption: Interruption = {}
      const { root, bob, workspace, base, revocations } = await openWithEditor(
        beforeContentWrite(interruption),
        { rlacEnabled: kind !== 'row-level access' },
      )
      if (kind === 'row-level access') await root(`PATCH ${workspace}/principals/bob`, { attributes: {} })
      interruption.run = async () => expect((await revocations[kind]()).status).toBe(200)
      const refused = await bob(`DELETE ${base}`)
      expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden'])
      expect((await root(`GET ${base}`)).status).toBe(200)
    },
  )

  test('keeps the knowledge base if the API key is deleted while recorded searches are deleted', async () => {
    const interruption: Interruption = {}
    const { root, bob, base, revocations } = await openWithEditor({
      rows: store => ({
        ...store,
        async count(table, ...query) {
          if (table.name === 'query_log') await interruption.run?.()
          return store.count(table, ...query)
        },
      }),
    })
    interruption.run = revocations.key
    const refused = await bob(`DELETE ${base}`)
    expect(refused.status).toBe(401)
    expect((await root(`GET ${base}`)).status).toBe(200)
  })

  test.each([
    ['policy', 403],
    ['attribute', 403],
    ['key', 401],
  ] as const)('keeps the document if the %s changes while its chunks are copied', async (kind, status) => {
    const interruption: Interruption = {}
    const { root, bob, base, revocations } = await openWithEditor({
      content: store => ({
        ...store,
        async read(...query) {
          const views = await store.read(...query)
          const { run } = interruption
          interruption.run = undefined
          await run?.()
          return views
        },
      }),
    })
    const { body } = await root(`POST ${base}/ingest`, { text: 'A turbine.' })
    const document = `${base}/documents/${(body.document as Row).documentId}`
    interruption.run = revocations[kind]
    expect((await bob(`DELETE ${document}`)).status).toBe(status)
    expect((await root(`GET ${document}`)).status).toBe(200)
  })

  test.each(['update', 'ingest', 'job', 'record'])(
    'the %s changes nothing if the API key is deleted meanwhile',
    async kind => {
      const interruption: Interruption = {}
      const { root, bob, base, revocations } = await openWithEditor({
        rows: store => ({
          ...store,
          async get(table, key) {
            const { run } = interruption
            if (table.name === (kind === 'ingest' ? 'chunking_services' : 'embedding_services')) {
              interruption.run = undefined
              await run?.()
            }
            return store.get(table, key)
          },
        }),
      })
      const { body } = await root(`POST ${base}/ingest`, { text: 'A turbine.' })
      const { documentId } = body.document as Row
      interruption.run = revocations.key
      const record = { id: `${documentId}:0`, text: 'A wing.' }
      const sent = {
        update: () => bob(`PATCH ${base}/documents/${documentId}`, { metadata: { team: 'red' } }),
        ingest: () => bob(`POST ${base}/ingest`, { text: 'A wing.' }),
        job: () => bob(`POST ${base}/ingest?async=true`, { text: 'A wing.' }),
        record: () => bob(`POST ${base}/records`, { records: [record] }),
      }[kind]!
      expect((await sent()).status).toBe(401)
      const { items } = (await root(`GET ${base}/documents`)).body
      expect(items).toMatchObject([{ status: 'ready', metadata: {}, chunkTotal: 1 }])
    },
  )

  test('keeps the workspace if the API key is deleted while its knowledge bases are deleted', async () => {
    const interruption: Interruption = {}
    const { wb, root, workspace } = await openWithEditor(beforeContentWrite(interruption))
    const key = await root(`POST ${workspace}/api-keys`, {
      label: 'ops',
      scopes: ['read', 'manage:workspace'],
    })
    await root(`POST ${workspace}/knowledge-bases`, { name: 'other' })
    interruption.run = () => root(`DELETE ${workspace}/api-keys/${(key.body.key as Row).keyId}`)
    const headers = { authorization: `Bearer ${key.body.plaintext}` }
    expect((await wb.send(`DELETE ${workspace}`, undefined, headers)).status).toBe(401)
    expect((await root(`GET ${workspace}`)).status).toBe(200)
  })

  test('stops deleting the conversations of an agent', async () => {
    const interruption: Interruption = {}
    const isDeletion = (write: Write) => write.op === 'deleteAll' && write.table.name === 'conversations'
    const { root, bob, workspace, revocations } = await openWithEditor(
      {
        rows: store => ({
          ...store,
          async atomic(writes) {
            const { run } = interruption
            if (run && writes.some(isDeletion)) {
              interruption.run = undefined
              await run()
            }
            return store.atomic(writes)
          },
        }),
      },
      { rlacEnabled: false },
    )
    const agent = await root(`POST ${workspace}/agents`, { name: 'agent' })
    const path = `${workspace}/agents/${agent.body.agentId}`
    const conversation = await root(`POST ${path}/conversations`, {})
    interruption.run = revocations['row-level access']
    const refused = await bob(`DELETE ${path}`)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden'])
    const kept = await root(`GET ${path}/conversations/${conversation.body.conversationId}`)
    expect(kept.status).toBe(200)
  })

  test('ends a compaction without its sizes, and stops it if its events are followed', async () => {
    const interruption: Interruption = {}
    let isStopped = false
    const { root, bob, base, revocations } = await openWithEditor({
      content: store => ({
        ...store,
        async compact(_key, { signal }) {
          await interruption.run?.()
          if (interruption.run === revocations.attribute)
            await new Promise(resolve => signal.addEventListener('abort', resolve))
          isStopped = signal.aborted
          return { before: { index: null, file: null }, after: { index: null, file: null } }
        },
      }),
    })
    interruption.run = revocations.policy
    const refused = await bob(`POST ${base}/compact`)
    expect([refused.status, codeOf(refused)]).toEqual([403, 'forbidden'])
    await root(`PATCH ${base}`, { policyDsl: "$principal.admin = 'true'" })
    interruption.run = revocations.attribute
    const events = await bob(`POST ${base}/compact`, undefined, { accept: 'text/event-stream' })
    expect(events.text).toContain('"code":"forbidden"')
    expect(events.text).not.toContain('before')
    await expect.poll(() => isStopped).toBe(true)
  })
})
