import { onTestFinished } from 'vitest'
import { limits } from '../../../src/contract/limits.ts'
import { llmServices } from '../../../src/contract/services.ts'
import { startChatServer } from '../../fakes/chat-server.ts'
import { makeAgent, makeConversation, messageRow, writeMessages } from '../../harness/agents.ts'
import { type HttpRuntime, RawBody, serveOverHttp } from '../../harness/http-runtime.ts'
import { imageOf } from '../../harness/images.ts'
import { makeWorkspace } from '../../harness/resources.ts'
import { open } from '../../harness/runtime.ts'
import { file, formBytes, formHeaders } from '../forms.ts'
import { unknownId } from '../shapes.ts'
import type { Provocation, Provocations } from './provocation.ts'

/** A message to an agent with the given LLM service; without one, to an agent that has none. */
function said(
  service: { provider: string; endpointBaseUrl?: null; credentialRef?: string } | undefined,
): Provocation {
  return async () => {
    const provider = await startChatServer()
    onTestFinished(() => provider.close())
    const wb = await serveOverHttp(await open())
    const { workspaceId } = await makeWorkspace(wb)
    const body = { name: 'model', modelName: 'a:3b', endpointBaseUrl: provider.url, ...service! }
    const made = service && (await wb.call(llmServices.create, { params: { workspaceId }, body }))
    const agent = await makeAgent(wb, { workspaceId, llmServiceId: made?.llmServiceId ?? null })
    const { agentId, conversationId } = await makeConversation(wb, agent)
    return wb.send(
      `POST /api/v1/workspaces/${workspaceId}/agents/${agentId}/conversations/${conversationId}/messages`,
      { content: 'hello' },
    )
  }
}

/** An image for a model that has rejected one before. */
const imageForTextModel: Provocation = async () => {
  const provider = await startChatServer()
  onTestFinished(() => provider.close())
  provider.script({ status: 400, body: { error: { message: 'this model does not support image input' } } })
  const wb = await serveOverHttp(await open())
  const { workspaceId } = await makeWorkspace(wb)
  const body = { name: 'model', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: provider.url }
  const { llmServiceId } = await wb.call(llmServices.create, { params: { workspaceId }, body })
  const agent = await makeAgent(wb, { workspaceId, llmServiceId })
  const { agentId, conversationId } = await makeConversation(wb, agent)
  const send = () =>
    wb.send(
      `POST /api/v1/workspaces/${workspaceId}/agents/${agentId}/conversations/${conversationId}/messages`,
      { content: 'see?', images: [imageOf()] },
    )
  await send()
  return send()
}

/** An image of a message without images. */
const missingImage: Provocation = async () => {
  const wb = await serveOverHttp(await open())
  const { workspaceId, agentId, conversationId } = await makeConversation(wb, await makeAgent(wb))
  const message = messageRow({ workspaceId, conversationId }, 1)
  await writeMessages(wb.dataDir, [message])
  return wb.send(
    `GET /api/v1/workspaces/${workspaceId}/agents/${agentId}/conversations/${conversationId}/messages/${message.messageId}/images/0`,
  )
}

/** A question in the OpenAI format to an agent whose model fails. */
const failedAnswer: Provocation = async () => {
  const provider = await startChatServer()
  onTestFinished(() => provider.close())
  provider.respond(() => ({ status: 402, body: { error: { message: 'no credit' } } }))
  const wb = await serveOverHttp(await open())
  const { workspaceId } = await makeWorkspace(wb)
  const body = { name: 'model', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: provider.url }
  const { llmServiceId } = await wb.call(llmServices.create, { params: { workspaceId }, body })
  const { agentId } = await makeAgent(wb, { workspaceId, llmServiceId })
  const line = `POST /api/v1/workspaces/${workspaceId}/openai/v1/chat/completions`
  return wb.send(line, { model: agentId, messages: [{ role: 'user', content: 'hello' }] })
}

/** A request for an attachment of a conversation. */
function attaching(act: (wb: HttpRuntime, path: string) => ReturnType<Provocation>): Provocation {
  return async () => {
    const wb = await serveOverHttp(await open())
    const { workspaceId, agentId, conversationId } = await makeConversation(wb, await makeAgent(wb))
    const path = `/api/v1/workspaces/${workspaceId}/agents/${agentId}/conversations/${conversationId}`
    return act(wb, `${path}/attachments`)
  }
}

const sentFile = new RawBody(formBytes([file('Everyone has 28 days.')]), formHeaders['content-type'])

export const chat = {
  attachment_not_found: attaching((wb, path) => wb.send(`GET ${path}/${unknownId}`)),
  attachment_limit_exceeded: attaching(async (wb, path) => {
    for (let count = 0; count < limits.attachmentsPerConversation; count++)
      await wb.send(`POST ${path}`, sentFile)
    return wb.send(`POST ${path}`, sentFile)
  }),
  chat_answer_failed: failedAnswer,
  chat_disabled: said(undefined),
  chat_image_not_found: missingImage,
  llm_credential_missing: said({
    provider: 'openai',
    endpointBaseUrl: null,
    credentialRef: 'env:OPENAI_API_KEY',
  }),
  llm_model_no_images: imageForTextModel,
  llm_provider_unsupported: said({ provider: 'huggingface' }),
} satisfies Provocations
