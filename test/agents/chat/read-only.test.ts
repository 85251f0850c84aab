import { expect, onTestFinished, test } from 'vitest'
import { agents } from '../../../src/contract/agents.ts'
import { llmServices } from '../../../src/contract/services.ts'
import { startChatServer } from '../../fakes/chat-server.ts'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import { makeBase, makeWorkspace } from '../../harness/resources.ts'
import { open } from '../../harness/runtime.ts'

/** Opens a runtime on a port that requires keys, with an agent, a fake model, and a read-only key. */
async function openWithReadOnlyKey() {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const runtime = { allowedEndpoints: [model.host] }
  const wb = await serveOverHttp(
    await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' }, runtime } }),
  )
  const asOperator = { call: wb.callAsOperator }
  const { workspaceId } = await makeWorkspace(asOperator)
  const params = { workspaceId }
  const base = await makeBase(asOperator, params)
  const service = { name: 'fake', provider: 'ollama', modelName: 'fake', endpointBaseUrl: model.url }
  const { llmServiceId } = await wb.callAsOperator(llmServices.create, { params, body: service })
  const { agentId } = await wb.callAsOperator(agents.create, {
    params,
    body: { name: 'maven', llmServiceId },
  })
  const place = `/api/v1/workspaces/${workspaceId}`
  const key = { label: 'reader', scopes: ['read'] }
  const { plaintext } = (await wb.sendAsOperator(`POST ${place}/api-keys`, key)).body
  const as = (line: string, json?: unknown) => wb.send(line, json, { authorization: `Bearer ${plaintext}` })
  return { model, base, as, agent: `${place}/agents/${agentId}` }
}

const searching = { toolCalls: [{ name: 'search_kb', arguments: { query: 'ornithopter' } }] }

test('a read-only key can create a conversation, and get an answer from a plain send and a stream [S5.5-31]', async () => {
  const { model, base, as, agent } = await openWithReadOnlyKey()
  await base.ingest('The ornithopter flaps its wings.')
  const begun = await as(`POST ${agent}/conversations`)
  expect(begun.status, begun.text).toBe(201)
  const messages = `${agent}/conversations/${begun.body.conversationId}/messages`

  model.script(searching, { text: 'It flaps [1].' })
  const sent = await as(`POST ${messages}`, { content: 'how does it fly?' })
  expect(sent.status, sent.text).toBe(201)
  expect(sent.body).toMatchObject({ assistant: { role: 'agent', content: 'It flaps [1].' } })

  model.script({ text: 'Yes.' })
  const streamed = await as(`POST ${messages}/stream`, { content: 'really?' })
  expect([streamed.status, streamed.text]).toEqual([200, expect.stringMatching(/^event: user-message\n/)])
  expect(streamed.text).toContain('event: done\n')

  const { items } = (await as(`GET ${messages}`)).body as { items: { content: string }[] }
  expect(items.map(({ content }) => content)).toEqual([
    'how does it fly?',
    'It flaps [1].',
    'really?',
    'Yes.',
  ])
})
