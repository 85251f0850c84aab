import { describe, expect, test } from 'vitest'
import { builtInToolIds } from '../harness/tools.ts'
import { anyText, arrayOf, exactly, Matcher } from './exactly.ts'
import { idOf, makeWorkspace } from './fixtures.ts'
import { past, type Row, useServer } from './harness.ts'
import { agent, notUuid, unknownId } from './shapes.ts'

const wire = useServer()

const ids = {
  low: '10000000-0000-4000-8000-000000000001',
  middle: '20000000-0000-4000-8000-000000000002',
  high: '30000000-0000-4000-8000-000000000003',
}

async function makeAgent(workspace: string, body: object = {}): Promise<string> {
  return `${workspace}/agents/${await wire.make(`${workspace}/agents`, { name: 'agent', ...body }, 'agentId')}`
}

async function firstLlmService(workspace: string): Promise<string> {
  const [seeded] = await wire.items(`${workspace}/agents`)
  return String(seeded!.llmServiceId)
}

describe('agents of a new workspace', () => {
  test.each(['local', 'mock', 'hcd'])(
    'a workspace of kind %s starts with Bobby and Maven, which use its LLM service',
    async kind => {
      const workspace = await makeWorkspace(wire, { kind })
      const llmServiceId = await firstLlmService(workspace)
      const seeded = {
        workspaceId: idOf(workspace),
        llmServiceId,
        description: anyText,
        systemPrompt: anyText,
      }
      await wire.exchange(`GET ${workspace}/agents`, undefined, 200, {
        items: [agent({ ...seeded, name: 'Bobby' }), agent({ ...seeded, name: 'Maven' })],
        nextCursor: null,
      })
    },
  )
})

describe('agents', () => {
  test('POST with only the required fields applies every default', async () => {
    const workspace = await makeWorkspace(wire)
    const expected = agent({ workspaceId: idOf(workspace), name: 'least' })
    await wire.exchange(`POST ${workspace}/agents`, { name: 'least' }, 201, expected)
  })

  test('POST stores every field with sorted, unique IDs, and GET returns it', async () => {
    const workspace = await makeWorkspace(wire)
    const llmServiceId = await firstLlmService(workspace)
    const sent = {
      agentId: ids.high,
      name: 'whole',
      description: 'all fields',
      systemPrompt: 'Answer.',
      userPrompt: 'Ask.',
      llmServiceId,
      knowledgeBaseIds: [ids.high, ids.low, ids.high],
      toolIds: ['search_kb', 'list_kbs', 'search_kb', 'anything'],
      rerankEnabled: true,
      rerankMaxResults: 3,
    }
    const sets = { knowledgeBaseIds: [ids.low, ids.high], toolIds: ['anything', 'list_kbs', 'search_kb'] }
    const made = await wire.exchange(`POST ${workspace}/agents`, sent, 201, agent({ ...sent, ...sets }))
    await wire.exchange(`GET ${workspace}/agents/${ids.high}`, undefined, 200, made)
  })

  test('lists agents by creation time, and allows duplicate names', async () => {
    const workspace = await makeWorkspace(wire)
    const made: string[] = []
    for (let count = 0; count < 3; count++) {
      made.push(idOf(await makeAgent(workspace, { name: 'twin' })))
      await past(new Date().toISOString())
    }
    const listed = await wire.items(`${workspace}/agents`)
    expect(listed.slice(2).map(({ agentId }) => agentId)).toEqual(made)
  })

  test('pages of one item list each agent once', async () => {
    const workspace = await makeWorkspace(wire)
    await makeAgent(workspace)
    const whole = await wire.items(`${workspace}/agents`)
    const walked: Row[] = []
    let cursor: unknown = null
    do {
      const after = cursor === null ? '' : `&cursor=${cursor}`
      const page = await wire.get(`${workspace}/agents?limit=1${after}`)
      walked.push(...(page.items as Row[]))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(walked).toEqual(whole)
  })

  test('S7.3-invalid_cursor: rejects a cursor of another workspace', async () => {
    const [one, other] = [await makeWorkspace(wire), await makeWorkspace(wire)]
    const { nextCursor } = await wire.get(`${one}/agents?limit=1`)
    await wire.refused(`GET ${other}/agents?cursor=${nextCursor}`, {}, 400, 'invalid_cursor')
  })

  test('S7.3-conflict: POST with an existing ID is 409, but the ID can be used in another workspace', async () => {
    const workspace = await makeWorkspace(wire)
    const agentId = ids.middle
    await makeAgent(workspace, { agentId })
    const words = new RegExp(`^agent with id '${agentId}' already exists$`)
    await wire.refused(`POST ${workspace}/agents`, { json: { name: 'x', agentId } }, 409, 'conflict', words)
    await makeAgent(await makeWorkspace(wire), { agentId })
  })

  test('POST reports unknown fields and succeeds; PATCH rejects them, and the ID', async () => {
    const workspace = await makeWorkspace(wire)
    const reply = await wire.send(`POST ${workspace}/agents`, { json: { name: 'x', colour: 'red' } })
    expect(reply.status).toBe(201)
    expect(reply.headers['x-workbase-ignored']).toContain('colour')
    const path = `${workspace}/agents/${(reply.body as Row).agentId}`
    for (const json of [{ colour: 'red' }, { agentId: ids.low }, { createdAt: '2026-01-01T00:00:00.000Z' }])
      await wire.refused(`PATCH ${path}`, { json }, 400, 'validation_error')
  })

  test('PATCH changes the given fields, null clears a field, and an empty body changes only updatedAt', async () => {
    const workspace = await makeWorkspace(wire)
    const path = await makeAgent(workspace, { description: 'old', systemPrompt: 'old', rerankMaxResults: 4 })
    const before = await wire.get(path)
    const patch = {
      name: 'new',
      description: null,
      systemPrompt: 'new',
      rerankMaxResults: null,
      toolIds: ['search_kb', 'count_documents'],
      knowledgeBaseIds: [ids.high, ids.low],
    }
    const expected = {
      ...before,
      ...patch,
      toolIds: ['count_documents', 'search_kb'],
      knowledgeBaseIds: [ids.low, ids.high],
      updatedAt: anyText,
    }
    const after = await wire.exchange(`PATCH ${path}`, patch, 200, agent(expected))
    await past(after.updatedAt)
    const touched = await wire.exchange(`PATCH ${path}`, {}, 200, { ...after, updatedAt: anyText })
    expect(String(touched.updatedAt) > String(after.updatedAt)).toBe(true)
  })

  test.each([
    ['name', 'x'.repeat(200), 'x'.repeat(201)],
    ['description', 'x'.repeat(2_000), 'x'.repeat(2_001)],
    ['systemPrompt', 'x'.repeat(131_072), 'x'.repeat(131_073)],
    ['userPrompt', 'x'.repeat(131_072), 'x'.repeat(131_073)],
    ['rerankMaxResults', 1, 0],
  ])('S7.3-13: %s is accepted up to its maximum length and rejected above it', async (field, most, over) => {
    const workspace = await makeWorkspace(wire)
    const path = await makeAgent(workspace, { [field]: most })
    expect((await wire.get(path))[field]).toBe(most)
    const names = new RegExp(`^${field}: `)
    const json = { name: 'x', [field]: over }
    await wire.refused(`POST ${workspace}/agents`, { json }, 400, 'validation_error', names)
    await wire.refused(`PATCH ${path}`, { json: { [field]: over } }, 400, 'validation_error', names)
  })

  test('S7.3-llm_service_not_found: POST and PATCH reject an unknown LLM service and change nothing', async () => {
    const workspace = await makeWorkspace(wire)
    const path = await makeAgent(workspace)
    const before = await wire.items(`${workspace}/agents`)
    const foreign = await firstLlmService(await makeWorkspace(wire))
    for (const llmServiceId of [unknownId, foreign]) {
      const words = new RegExp(`^LLM service '${llmServiceId}' not found$`)
      const json = { name: 'x', llmServiceId }
      await wire.refused(`POST ${workspace}/agents`, { json }, 404, 'llm_service_not_found', words)
      await wire.refused(`PATCH ${path}`, { json }, 404, 'llm_service_not_found', words)
    }
    expect(await wire.items(`${workspace}/agents`)).toEqual(before)
  })

  test('S7.3-reranking_service_not_found: POST and PATCH reject an unknown reranking service and change nothing', async () => {
    const workspace = await makeWorkspace(wire)
    const path = await makeAgent(workspace)
    const before = await wire.items(`${workspace}/agents`)
    const json = { name: 'x', rerankingServiceId: unknownId }
    await wire.refused(`POST ${workspace}/agents`, { json }, 404, 'reranking_service_not_found')
    await wire.refused(`PATCH ${path}`, { json }, 404, 'reranking_service_not_found')
    expect(await wire.items(`${workspace}/agents`)).toEqual(before)
  })

  test('S2.7-03 S7.3-agent_not_found: an agent that is unknown or of another workspace is 404 for every method', async () => {
    const workspace = await makeWorkspace(wire)
    const foreign = idOf(await makeAgent(await makeWorkspace(wire)))
    for (const agentId of [unknownId, foreign]) {
      const path = `${workspace}/agents/${agentId}`
      const words = new RegExp(`^agent '${agentId}' not found$`)
      await wire.refused(`GET ${path}`, {}, 404, 'agent_not_found', words)
      await wire.refused(`PATCH ${path}`, { json: { name: 'x' } }, 404, 'agent_not_found', words)
      await wire.refused(`DELETE ${path}`, {}, 404, 'agent_not_found', words)
      await wire.refused(`GET ${path}/conversations`, {}, 404, 'agent_not_found', words)
      await wire.refused(`POST ${path}/conversations`, { json: {} }, 404, 'agent_not_found', words)
    }
  })

  test('S7.3-workspace_not_found: reports an unknown workspace before an unknown agent', async () => {
    const list = `/api/v1/workspaces/${unknownId}/agents`
    await wire.refused(`GET ${list}`, {}, 404, 'workspace_not_found')
    await wire.refused(`GET ${list}/${unknownId}`, {}, 404, 'workspace_not_found')
    const json = { name: 'x', llmServiceId: unknownId, toolIds: ['native:fetch'] }
    await wire.refused(`POST ${list}`, { json }, 404, 'workspace_not_found')
    const template = { json: { templateId: 'nobody' } }
    await wire.refused(`POST ${list}/from-template`, template, 404, 'workspace_not_found')
    for (const path of ['agent-templates', 'available-tools', 'conversations'])
      await wire.refused(`GET /api/v1/workspaces/${unknownId}/${path}`, {}, 404, 'workspace_not_found')
  })

  test('rejects IDs that are not UUIDs', async () => {
    const workspace = await makeWorkspace(wire)
    await wire.refused(`GET ${workspace}/agents/${notUuid}`, {}, 400, 'validation_error', /^agentId: /)
    for (const field of ['agentId', 'llmServiceId', 'rerankingServiceId'])
      await wire.refused(
        `POST ${workspace}/agents`,
        { json: { name: 'x', [field]: notUuid } },
        400,
        'validation_error',
        new RegExp(`^${field}: `),
      )
  })

  test('DELETE returns 204 and deletes the conversations', async () => {
    const workspace = await makeWorkspace(wire)
    const [gone, kept] = [await makeAgent(workspace), await makeAgent(workspace)]
    const own = await wire.make(`${gone}/conversations`, {}, 'conversationId')
    const other = await wire.make(`${kept}/conversations`, {}, 'conversationId')
    await wire.exchange(`DELETE ${gone}`, undefined, 204, undefined)
    await wire.refused(`GET ${gone}`, {}, 404, 'agent_not_found')
    await wire.refused(`GET ${gone}/conversations/${own}`, {}, 404, 'conversation_not_found')
    const left = await wire.items(`${workspace}/conversations`)
    expect(left.map(({ conversationId }) => conversationId)).toEqual([other])
  })
})

describe('agent templates', () => {
  const template = {
    templateId: anyText,
    name: anyText,
    description: anyText,
    persona: anyText,
    systemPrompt: anyText,
    defaultOnNewWorkspace: new Matcher('a flag', value => typeof value === 'boolean'),
  }

  test('S4.2-31: GET /api/v1/agent-templates lists the registered templates, also for a workspace', async () => {
    const whole = await wire.exchange('GET /api/v1/agent-templates', undefined, 200, {
      items: arrayOf(template),
    })
    const named = (whole.items as Row[]).map(({ templateId, name, defaultOnNewWorkspace }) => {
      return [templateId, name, defaultOnNewWorkspace]
    })
    expect(named).toEqual([
      ['bobby', 'Bobby', true],
      ['maven', 'Maven', true],
      ['quill', 'Quill', false],
      ['sage', 'Sage', false],
    ])
    await wire.exchange(`GET ${await makeWorkspace(wire)}/agent-templates`, undefined, 200, whole)
  })

  test('an agent from a template has its prompt and the first LLM service; each call creates an agent', async () => {
    const workspace = await makeWorkspace(wire)
    const llmServiceId = await firstLlmService(workspace)
    const { name, description, systemPrompt } = (await wire.items('/api/v1/agent-templates'))[3]!
    const expected = agent({ name, description, systemPrompt, llmServiceId })
    const path = `${workspace}/agents/from-template`
    const first = await wire.exchange(`POST ${path}`, { templateId: 'sage' }, 201, expected)
    const second = await wire.exchange(`POST ${path}`, { templateId: 'sage' }, 201, expected)
    expect(first.agentId).not.toBe(second.agentId)
  })

  test('S7.3-agent_template_not_found: rejects an unknown template', async () => {
    const path = `${await makeWorkspace(wire)}/agents/from-template`
    const words = /^agent template 'nobody' not found$/
    await wire.refused(
      `POST ${path}`,
      { json: { templateId: 'nobody' } },
      404,
      'agent_template_not_found',
      words,
    )
    const more = { json: { templateId: 'sage', name: 'mine' } }
    await wire.refused(`POST ${path}`, more, 400, 'validation_error', /"name"/)
  })
})

describe('agent tools', () => {
  test('a workspace lists the built-in tools in order, with argument schemas', async () => {
    const { items } = (await wire.get(`${await makeWorkspace(wire)}/available-tools`)) as { items: Row[] }
    expect(items.map(({ id }) => id)).toEqual(builtInToolIds)
    const inputSchema = new Matcher('an object schema that takes nothing else', value => {
      const { type, additionalProperties } = value as Row
      return type === 'object' && additionalProperties === false
    })
    for (const item of items)
      exactly(item, { id: item.id, description: anyText, source: 'builtin', inputSchema })
    expect(items[4]!.inputSchema).toMatchObject({
      required: ['query'],
      properties: {
        limit: { minimum: 1, maximum: 8, default: 5, description: 'maximum number of passages' },
        knowledgeBaseId: { format: 'uuid' },
      },
    })
    expect(items[6]!.inputSchema).toMatchObject({
      required: ['knowledgeBaseId', 'documentId'],
      properties: {
        limit: { minimum: 1, maximum: 50, default: 10, description: 'maximum number of chunks' },
        offset: { minimum: 0, default: 0, description: 'number of chunks to skip' },
      },
    })
  })

  test.each(['astra', 'hcd'])('a workspace of kind %s also lists the tools of its database', async kind => {
    const workspace = await makeWorkspace(wire, { kind })
    const items = await wire.items(`${workspace}/available-tools`)
    expect(items.at(-1)).toMatchObject({ id: 'astra:data_api', source: 'astra' })
    await makeAgent(workspace, { toolIds: ['astra:data_api'] })
  })

  test('S7.3-agent_tool_unresolved: names every tool that the workspace does not offer, and changes nothing', async () => {
    const workspace = await makeWorkspace(wire)
    const path = await makeAgent(workspace, { toolIds: ['search_kb', 'no such tool', 'other:thing'] })
    const before = await wire.items(`${workspace}/agents`)
    const remote = `mcp:${unknownId}:look`
    const toolIds = [
      'search_kb',
      'unknown',
      'native:fetch',
      'native:web_search',
      'astra:data_api',
      remote,
      'mcp:',
    ]
    const words = new RegExp(`: .* astra:data_api, mcp:, ${remote}, native:fetch, native:web_search$`)
    for (const line of [`POST ${workspace}/agents`, `PATCH ${path}`])
      await wire.refused(line, { json: { name: 'x', toolIds } }, 422, 'agent_tool_unresolved', words)
    expect(await wire.items(`${workspace}/agents`)).toEqual(before)
  })
})
