import { describe, expect, test } from 'vitest'
import { readEvents } from '../../src/client/read-events.ts'
import type { Message } from '../../src/contract/conversations.ts'
import type { ChatRequest } from '../fakes/chat-server.ts'
import { ingest, itemsOf, openRestrictedWorkspace, type Row } from '../harness/rows.ts'
import { eventData, eventNames, openTestChat } from '../harness/test-chat.ts'

const asAlice = { 'x-view-as-principal': 'alice' }
const asRoot = { 'x-view-as-principal': 'root' }
const secret = 'Refunds are paid within 14 days.'
const searching = { toolCalls: [{ name: 'search_kb', arguments: { query: 'refunds' } }] }
const answering = { text: 'Within 14 days [1].' }

/** A chat of `alice` with a model, in a workspace with row-level access. Only she sees the document about refunds. */
async function openChatOfAlice(options: { service?: object; fields?: object; record?: boolean } = {}) {
  let base = ''
  let path = ''
  const chat = await openTestChat({
    headers: asAlice,
    service: options.service ?? {},
    async prepare(wb, workspaceId) {
      const workspace = `/api/v1/workspaces/${workspaceId}`
      await wb.send(`PATCH ${workspace}`, { rlacEnabled: true })
      await wb.send(`POST ${workspace}/principals`, { principalId: 'root', role: 'admin' })
      const created = await wb.send(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
      const { knowledgeBaseId } = created.body
      base = `${workspace}/knowledge-bases/${knowledgeBaseId}`
      if (options.record) await wb.send(`POST ${base}/records`, { records: [{ id: 'r', text: secret }] })
      else
        path = await ingest(wb.send, base, {
          text: secret,
          sourceFilename: 'refunds.md',
          metadata: { title: 'Refunds' },
          ...options.fields,
        })
      return { knowledgeBaseIds: [String(knowledgeBaseId)] }
    },
  })
  return {
    ...chat,
    base,
    document: path,
    /** Hides the document from alice. */
    hide: async () => {
      const reply = await chat.send(`PATCH ${path}`, { visibleTo: ['bob'] }, asRoot)
      expect(reply.status).toBe(200)
    },
    /** Sends a question, and returns the last request to the model. */
    async requestFor(question: string): Promise<string> {
      await chat.stream(question)
      return JSON.stringify(chat.model.received.at(-1)!.body.messages)
    },
    messages: async () => itemsOf(await chat.send(`GET ${chat.path}/messages`)) as unknown as Message[],
  }
}

describe('after a document was hidden from the sender, the model does not receive', () => {
  test('the answers and tool results that used it', async () => {
    const chat = await openChatOfAlice()
    chat.model.script(searching, answering)
    await chat.stream('When are refunds paid?')
    expect(await chat.requestFor('Thanks')).toContain('14 days')
    await chat.hide()
    const request = await chat.requestFor('And abroad?')
    expect(request).toContain('When are refunds paid?')
    for (const text of ['14 days', 'refunds.md', 'search_kb']) expect(request).not.toContain(text)
    const [, answer] = await chat.messages()
    expect(answer!.metadata.citations).toBe('[]')
  })

  test('later answers that repeat an earlier one', async () => {
    const chat = await openChatOfAlice()
    chat.model.script(searching, answering, { text: 'As I said: 14 days.' })
    await chat.stream('When are refunds paid?')
    await chat.stream('Repeat that')
    await chat.hide()
    const request = await chat.requestFor('And again?')
    expect(request).toContain('Repeat that')
    expect(request).not.toContain('14 days')
  })

  test.each([
    ['list_documents', {}],
    ['summarize_kb', {}],
    ['get_document', { documentId: 'DOCUMENT', knowledgeBaseId: 'BASE' }],
    ['list_chunks', { documentId: 'DOCUMENT', knowledgeBaseId: 'BASE' }],
  ])('the result of %s', async (name, args) => {
    const chat = await openChatOfAlice()
    const ids = { documentId: chat.document.split('/').at(-1), knowledgeBaseId: chat.base.split('/').at(-1) }
    const call = { name, arguments: Object.keys(args).length > 0 ? ids : {} }
    chat.model.script({ toolCalls: [call] }, { text: 'It is refunds.md.' })
    await chat.stream('What is there?')
    expect(await chat.requestFor('Thanks')).toContain('refunds.md')
    await chat.hide()
    expect(await chat.requestFor('And now?')).not.toContain('refunds.md')
  })

  test('a summary that covers it', async () => {
    const chat = await openChatOfAlice({ service: { provider: 'openai', contextWindowTokens: 4_096 } })
    const isSummary = ({ body }: ChatRequest) => JSON.stringify(body).includes('You summarize')
    chat.model.script(searching, answering)
    await chat.stream('When are refunds paid?')
    let summaries = 0
    chat.model.respond(request => {
      if (!isSummary(request)) return { text: 'The harbor is open today. '.repeat(60) }
      summaries++
      return { text: 'The user knows that refunds take 14 days.' }
    })
    for (let turn = 0; summaries === 0 && turn < 20; turn++) {
      await chat.stream(`Harbor ${turn}?`)
      await new Promise(setImmediate)
    }
    await expect.poll(() => summaries).toBeGreaterThan(0)
    await expect.poll(async () => (await chat.messages()).some(({ role }) => role === 'system')).toBe(true)
    expect(await chat.requestFor('Thanks')).toContain('refunds take 14 days')
    await chat.hide()
    expect(await chat.requestFor('And now?')).not.toContain('14 days')
    for (const { metadata } of await chat.messages())
      expect(JSON.stringify(metadata)).not.toContain('refunds.md')
  })
})

test('an answer ends if a document that it uses is hidden while the model writes', async () => {
  const chat = await openChatOfAlice()
  chat.model.script(searching, { ...answering, silentAfter: 2 })
  const events = []
  for await (const event of chat.streamEvents('When are refunds paid?')) {
    events.push(event)
    if (event.event !== 'token') continue
    await chat.hide()
    chat.model.release()
  }
  expect(eventNames(events).slice(-2)).toEqual(['token-reset', 'error'])
  const [failure] = eventData(events, 'error')
  expect(failure!.content).toContain('you may no longer see it')
  expect(JSON.stringify(failure)).not.toContain('refunds.md')
})

test('a detached turn cannot be read again after a document that it used was hidden', async () => {
  const chat = await openChatOfAlice()
  chat.model.script(searching, answering)
  await chat.stream('When are refunds paid?', { detached: true })
  const again = () => chat.send(`GET ${chat.path}/messages/stream`)
  expect((await again()).text).toContain('14 days')
  await chat.hide()
  expect(await again()).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
})

test('a citation of a record without a document is visible as long as the record is', async () => {
  const chat = await openChatOfAlice({ record: true })
  chat.model.script(searching, answering)
  await chat.stream('When are refunds paid?')
  const citations = async () => JSON.parse((await chat.messages())[1]!.metadata.citations ?? '[]') as Row[]
  expect(await citations()).toMatchObject([{ chunkId: 'r', documentId: null }])
  expect(await chat.requestFor('Thanks')).toContain('14 days')
  const hidden = { id: 'r', text: secret, visibleTo: ['bob'] }
  expect((await chat.send(`POST ${chat.base}/records`, { records: [hidden] }, asRoot)).status).toBe(200)
  expect(await citations()).toEqual([])
  expect(await chat.requestFor('And now?')).not.toContain('14 days')
  expect((await chat.send(`DELETE ${chat.base}/records/r`, undefined, asRoot)).body).toEqual({
    deleted: true,
  })
  expect(await citations()).toEqual([])
})

describe('jobs', () => {
  test('the events of a job end when its document is hidden', async () => {
    const { wb, workspace, base, as } = await openRestrictedWorkspace()
    const { body } = await as('alice')(`POST ${base}/ingest?async=true`, { text: 'A queued text.' })
    const { jobId, documentId } = body.job as Row
    const response = await wb.runtime.fetch(
      new Request(`http://localhost${workspace}/jobs/${jobId}/events`, { headers: asAlice }),
    )
    const names: string[] = []
    for await (const { event } of readEvents(response.body!, new AbortController().signal)) {
      names.push(event)
      await as('root')(`PATCH ${base}/documents/${documentId}`, { visibleTo: ['bob'] })
    }
    expect(names).toEqual(['job'])
  })

  test('a queued overwrite does not delete a document that a policy hides in the meantime', async () => {
    const { wb, base, as } = await openRestrictedWorkspace()
    const named = { text: 'A turbine.', sourceFilename: 'a.md' }
    const path = await ingest(as('alice'), base, named)
    const body = { ...named, text: 'Another turbine.', overwriteOnNameConflict: true }
    expect((await as('alice')(`POST ${base}/ingest?async=true`, body)).status).toBe(202)
    const policyDsl = "'root' = current_principal_id()"
    await wb.send(`PATCH ${base}`, { policyEnabled: true, policyDsl })
    await wb.settle()
    expect((await as('root')(`GET ${path}`)).status).toBe(200)
    expect(itemsOf(await as('root')(`GET ${base}/documents`))).toHaveLength(2)
  })
})

test('a change of a principal acts on the next request', async () => {
  const { wb, workspace, base, as } = await openRestrictedWorkspace()
  await ingest(as('bob'), base, { text: 'A turbine of bob.', metadata: { team: 'blue' } })
  await wb.send(`POST ${workspace}/principals`, { principalId: 'alice', attributes: { team: 'blue' } })
  await wb.send(`PATCH ${base}`, { policyEnabled: true, policyDsl: 'team = $principal.team' })
  const found = async () =>
    ((await as('alice')(`POST ${base}/search`, { text: 'turbine' })).body as unknown as Row[]).length
  expect(await found()).toBe(1)
  await wb.send(`PATCH ${workspace}/principals/alice`, { attributes: { team: 'red' } })
  expect(await found()).toBe(0)
  await wb.send(`PATCH ${workspace}/principals/alice`, { attributes: { team: 'blue' } })
  expect(await found()).toBe(1)
  await wb.send(`DELETE ${workspace}/principals/alice`)
  expect(await found()).toBe(0)
})
