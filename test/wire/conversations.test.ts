import { Readable } from 'node:stream'
import { beforeAll, describe, expect, test } from 'vitest'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { messageRow, writeMessages } from '../harness/agents.ts'
import { idOf, makeWorkspace } from './fixtures.ts'
import { past, type Row, useServer } from './harness.ts'
import { conversation, message, notUuid, unknownId } from './shapes.ts'

const wire = useServer()

const ids = {
  low: '10000000-0000-4000-8000-000000000001',
  high: '30000000-0000-4000-8000-000000000003',
}

interface Place {
  readonly workspace: string
  readonly workspaceId: string
  readonly agent: string
  readonly agentId: string
  readonly list: string
}

async function makePlace(workspace?: string): Promise<Place> {
  const home = workspace ?? (await makeWorkspace(wire))
  const agentId = await wire.make(`${home}/agents`, { name: 'agent' }, 'agentId')
  const agent = `${home}/agents/${agentId}`
  return { workspace: home, workspaceId: idOf(home), agent, agentId, list: `${agent}/conversations` }
}

function make(list: string, body: object = {}): Promise<string> {
  return wire.make(list, body, 'conversationId')
}

describe('conversations', () => {
  test('POST with an empty body applies every default and does not show the creator', async () => {
    const { list, workspaceId, agentId } = await makePlace()
    await wire.exchange(`POST ${list}`, {}, 201, conversation({ workspaceId, agentId }))
  })

  test.each([
    ['no body', {}],
    ['an empty body', { raw: '', headers: { 'content-type': 'application/json' } }],
    ['an empty body in chunks', { raw: Readable.from([]), headers: { 'content-type': 'application/json' } }],
  ])('POST with %s applies every default', async (_, sent) => {
    const { list } = await makePlace()
    const reply = await wire.send(`POST ${list}`, sent)
    expect([reply.status, reply.body]).toEqual([201, expect.objectContaining({ title: null })])
  })

  test('POST stores every field with sorted, unique IDs, and GET returns it', async () => {
    const { list, agentId } = await makePlace()
    const sent = {
      conversationId: ids.low,
      title: 'Refunds',
      knowledgeBaseIds: [ids.high, ids.low, ids.high],
    }
    const expected = conversation({ agentId, ...sent, knowledgeBaseIds: [ids.low, ids.high] })
    const made = await wire.exchange(`POST ${list}`, sent, 201, expected)
    await wire.exchange(`GET ${list}/${ids.low}`, undefined, 200, made)
  })

  test('lists conversations of an agent and of the workspace in pages, newest first', async () => {
    const one = await makePlace()
    const other = await makePlace(one.workspace)
    const made: [agent: string, id: string][] = []
    for (const { list, agentId } of [one, other, one, one]) {
      made.unshift([agentId, await make(list)])
      await past(new Date().toISOString())
    }
    const own = made.filter(([agentId]) => agentId === one.agentId).map(([, id]) => id)
    expect(await walk(one.list)).toEqual(own)
    expect(await walk(`${one.workspace}/conversations`)).toEqual(made.map(([, id]) => id))
    const [first] = made
    await wire.exchange(`GET ${one.workspace}/conversations?limit=200`, undefined, 200, {
      items: made.map(([agentId, conversationId]) => conversation({ agentId, conversationId })),
      nextCursor: null,
    })
    expect(first![1]).toBe(own[0])
  })

  test('sorts conversations by last activity and finds them by title words, in pages', async () => {
    const { workspaceId, workspace, list } = await makePlace()
    const [first, second, third] = [
      await make(list, { title: 'Refund window' }),
      await make(list, { title: 'Refunds abroad, by window' }),
      await make(list, { title: 'Opening hours' }),
    ]
    const { rows, close } = await openEmbeddedStore({ path: `${wire.serving.dataDir}/workbase.db` })
    for (const [id, at] of [
      [third, 1],
      [first, 2],
      [second, 3],
    ] as const) {
      const stored = await rows.get(tables.conversations, [workspaceId, id])
      const lastActivityAt = new Date(Date.UTC(2030, 0, at)).toISOString()
      const row = { ...stored!.row, lastActivityAt }
      await rows.atomic([{ op: 'replace', table: tables.conversations, row }])
    }
    await close()
    for (const path of [list, `${workspace}/conversations`]) {
      expect(await walk(path, 'sort=activity')).toEqual([second, first, third])
      expect(await walk(path, 'sort=activity&q=WINDOW%20refund')).toEqual([second, first])
      expect(await walk(path, 'q=nothing')).toEqual([])
      const { nextCursor } = await wire.get(`${path}?limit=1&q=refund`)
      await wire.refused(`GET ${path}?limit=1&q=hours&cursor=${nextCursor}`, {}, 400, 'invalid_cursor')
    }
    await wire.refused(`GET ${list}?sort=size`, {}, 400, 'validation_error', /^sort/)
    await wire.refused(`GET ${list}?q=${'x'.repeat(201)}`, {}, 400, 'validation_error', /^q/)
  })

  test('finds conversations by words of messages and titles, ignoring tool messages', async () => {
    const { workspaceId, workspace, list } = await makePlace()
    const [found, elsewhere] = [
      await make(list, { title: 'Refunds' }),
      await make(list, { title: 'Refunds' }),
    ]
    const first = { workspaceId, conversationId: found }
    const other = { workspaceId, conversationId: elsewhere }
    await writeMessages(wire.serving.dataDir, [
      messageRow(first, 1, { content: 'How about ABROAD?' }),
      messageRow(first, 2, { role: 'agent', content: 'Within thirty days.' }),
      messageRow(other, 3, { role: 'tool', content: 'abroad thirty', toolId: 'search_kb' }),
    ])
    for (const path of [list, `${workspace}/conversations`]) {
      expect(await walk(path, 'q=refunds%20abroad%20Thirty')).toEqual([found])
      expect(await walk(path, 'q=abroad')).toEqual([found])
      expect(await walk(path, 'q=abroad%20hours')).toEqual([])
    }
  })

  test('continues a search over many messages on the next page', async () => {
    const { workspaceId, list } = await makePlace()
    const oldest = await make(list)
    const rows = [messageRow({ workspaceId, conversationId: oldest }, 1, { content: 'a needle' })]
    for (const at of [2, 3, 4]) {
      await past(new Date().toISOString())
      const conversationId = await make(list)
      rows.push(messageRow({ workspaceId, conversationId }, at, { content: 'hay '.repeat(1_000_000) }))
    }
    await writeMessages(wire.serving.dataDir, rows)
    const { items, nextCursor } = await wire.get(`${list}?q=needle`)
    expect([items, nextCursor]).toEqual([[], expect.any(String)])
    expect(await walk(list, 'q=needle')).toEqual([oldest])
  })

  test('S7.3-invalid_cursor: rejects a cursor of another agent or of the workspace', async () => {
    const one = await makePlace()
    const other = await makePlace(one.workspace)
    for (const { list } of [one, one, other, other]) await make(list)
    const { nextCursor } = await wire.get(`${one.list}?limit=1`)
    for (const list of [other.list, `${one.workspace}/conversations`])
      await wire.refused(`GET ${list}?cursor=${nextCursor}`, {}, 400, 'invalid_cursor')
  })

  test('S7.3-conflict: an existing ID is 409, also under another agent', async () => {
    const one = await makePlace()
    const other = await makePlace(one.workspace)
    const conversationId = await make(one.list)
    const words = new RegExp(`^conversation with id '${conversationId}' already exists$`)
    for (const { list } of [one, other])
      await wire.refused(`POST ${list}`, { json: { conversationId } }, 409, 'conflict', words)
    expect(await wire.items(other.list)).toEqual([])
  })

  test('PATCH changes the given fields, null clears the title, and unknown fields are rejected', async () => {
    const { list } = await makePlace()
    const path = `${list}/${await make(list, { title: 'old', knowledgeBaseIds: [ids.low] })}`
    const before = await wire.get(path)
    await wire.exchange(`PATCH ${path}`, {}, 200, before)
    await wire.exchange(`PATCH ${path}`, { title: 'new' }, 200, { ...before, title: 'new' })
    const patch = { title: null, knowledgeBaseIds: [ids.high, ids.high] }
    const after = { ...before, title: null, knowledgeBaseIds: [ids.high] }
    await wire.exchange(`PATCH ${path}`, patch, 200, after)
    for (const json of [{ colour: 'red' }, { agentId: ids.low }, { ownerPrincipalId: 'me' }])
      await wire.refused(`PATCH ${path}`, { json }, 400, 'validation_error')
    await wire.exchange(`GET ${path}`, undefined, 200, after)
  })

  test.each([
    ['title', ''],
    ['title', 5],
    ['title', 'x'.repeat(2_001)],
    ['knowledgeBaseIds', [notUuid]],
    ['knowledgeBaseIds', 'x'],
    ['knowledgeBaseIds', Array(1_001).fill(ids.low)],
  ])('S7.3-13: POST and PATCH reject %s by name', async (field, value) => {
    const { list } = await makePlace()
    const path = `${list}/${await make(list)}`
    for (const line of [`POST ${list}`, `PATCH ${path}`])
      await wire.refused(line, { json: { [field]: value } }, 400, 'validation_error', new RegExp(`^${field}`))
    expect(await wire.items(list)).toHaveLength(1)
  })

  test('S2.7-03 S7.3-conversation_not_found S7.3-03: a conversation that is unknown or of another agent is 404 for every method', async () => {
    const one = await makePlace()
    const other = await makePlace(one.workspace)
    const abroad = await makePlace()
    const conversationId = await make(one.list, { title: 'kept' })
    const before = await wire.get(`${one.list}/${conversationId}`)
    const absent = [
      `${one.list}/${unknownId}`,
      `${other.list}/${conversationId}`,
      `${abroad.list}/${conversationId}`,
      `${one.workspace}/agents/${unknownId}/conversations/${conversationId}`,
    ]
    for (const path of absent) {
      const words = new RegExp(`^conversation '${idOf(path)}' not found$`)
      const patch = { json: { title: 'taken over' } }
      await wire.refused(`GET ${path}`, {}, 404, 'conversation_not_found', words)
      await wire.refused(`PATCH ${path}`, patch, 404, 'conversation_not_found', words)
      await wire.refused(`DELETE ${path}`, {}, 404, 'conversation_not_found', words)
      await wire.refused(`GET ${path}/messages`, {}, 404, 'conversation_not_found', words)
      await wire.refused(`GET ${path}/messages/${unknownId}`, {}, 404, 'conversation_not_found', words)
    }
    await wire.exchange(`GET ${one.list}/${conversationId}`, undefined, 200, before)
  })

  test('DELETE returns 204 and deletes the messages; the ID can be used again', async () => {
    const { list, workspaceId } = await makePlace()
    const conversationId = await make(list)
    await writeMessages(wire.serving.dataDir, [messageRow({ workspaceId, conversationId }, 1)])
    const path = `${list}/${conversationId}`
    expect(await wire.items(`${path}/messages`)).toHaveLength(1)
    await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
    await wire.refused(`GET ${path}`, {}, 404, 'conversation_not_found')
    await make(list, { conversationId })
    expect(await wire.items(`${path}/messages`)).toEqual([])
  })
})

describe('messages', () => {
  const shown = [1, 2, 6, 7, 10]
  let place: Place
  let path: string
  let chatId: string

  beforeAll(async () => {
    place = await makePlace()
    chatId = await make(place.list)
    path = `${place.list}/${chatId}/messages`
    const at = { workspaceId: place.workspaceId, conversationId: chatId }
    const call = {
      role: 'agent',
      metadata: { model: 'm', finish_reason: 'tool_calls' },
      toolCallPayload: { toolCalls: [] },
    } as const
    const result = {
      role: 'tool',
      content: null,
      toolId: 'search_kb',
      toolResponse: { content: 'secret' },
    } as const
    await writeMessages(wire.serving.dataDir, [
      messageRow(at, 10, { role: 'system', content: null }),
      messageRow(at, 1),
      messageRow(at, 2, { metadata: { finish_reason: 'tool_calls' } }),
      messageRow(at, 3, call),
      messageRow(at, 4, result),
      messageRow(at, 5, call),
      messageRow(at, 6, {
        role: 'agent',
        tokenCount: 12,
        metadata: { model: 'm', finish_reason: 'stop' },
        authorId: place.agentId,
      }),
      messageRow(at, 7),
      messageRow(at, 8, call),
      messageRow(at, 9, result),
    ])
  })

  test('lists messages in order, without messages between the model and its tools', async () => {
    const { workspaceId } = place
    const known = (number: number, fields: Row = {}) => {
      const { messageId, messageTs, content } = messageRow({ workspaceId, conversationId: chatId }, number)
      return message({ workspaceId, chatId, messageId, messageTs, content, ...fields })
    }
    await wire.exchange(`GET ${path}`, undefined, 200, {
      items: [
        known(1),
        known(2, { metadata: { finish_reason: 'tool_calls' } }),
        known(6, { role: 'agent', tokenCount: 12, metadata: { model: 'm', finish_reason: 'stop' } }),
        known(7),
        known(10, { role: 'system', content: null }),
      ],
      nextCursor: null,
    })
  })

  test.each([1, 2, 3, 4, 5, 6])(
    'pages of %i messages are full although some messages are hidden',
    async limit => {
      const sizes: number[] = []
      const walked: Row[] = []
      let cursor: unknown = null
      do {
        const page = await wire.get(`${path}?limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`)
        sizes.push((page.items as Row[]).length)
        walked.push(...(page.items as Row[]))
        cursor = page.nextCursor
      } while (cursor !== null)
      expect(walked).toEqual(await wire.items(path))
      expect(sizes.slice(0, -1).every(size => size === limit)).toBe(true)
      expect(sizes.at(-1)).toBeGreaterThan(0)
    },
  )

  test('GET returns a message as in the list', async () => {
    for (const row of await wire.items(path))
      await wire.exchange(`GET ${path}/${row.messageId}`, undefined, 200, row)
  })

  test('S2.7-03 S7.3-chat_message_not_found: a message that is unknown, hidden or of another conversation is 404', async () => {
    const { workspaceId, list } = place
    const hidden = [3, 4, 5, 8, 9].map(n => messageRow({ workspaceId, conversationId: chatId }, n).messageId)
    for (const messageId of [unknownId, ...hidden]) {
      const words = new RegExp(`^chat message '${messageId}' not found$`)
      await wire.refused(`GET ${path}/${messageId}`, {}, 404, 'chat_message_not_found', words)
    }
    const other = await make(list)
    for (const n of shown) {
      const { messageId } = messageRow({ workspaceId, conversationId: chatId }, n)
      await wire.refused(`GET ${list}/${other}/messages/${messageId}`, {}, 404, 'chat_message_not_found')
    }
  })

  test('S7.3-invalid_cursor: rejects a cursor of another conversation', async () => {
    const other = await make(place.list)
    const { nextCursor } = await wire.get(`${path}?limit=1`)
    await wire.refused(`GET ${place.list}/${other}/messages?cursor=${nextCursor}`, {}, 400, 'invalid_cursor')
  })
})

/** Returns the IDs of a whole list, read in pages of one. */
async function walk(list: string, query = ''): Promise<unknown[]> {
  const walked: unknown[] = []
  let cursor: unknown = null
  do {
    const page = await wire.get(`${list}?limit=1&${query}${cursor === null ? '' : `&cursor=${cursor}`}`)
    walked.push(...(page.items as Row[]).map(({ conversationId }) => conversationId))
    cursor = page.nextCursor
  } while (cursor !== null)
  return walked
}
