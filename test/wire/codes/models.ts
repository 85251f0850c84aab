import { onTestFinished } from 'vitest'
import { refusals, startChatServer } from '../../fakes/chat-server.ts'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import { makeWorkspace } from '../../harness/resources.ts'
import { open } from '../../harness/runtime.ts'
import type { Provocation, Provocations } from './provocation.ts'

/** A service with a model that its provider rejects. */
function refusedModel(refusal: keyof typeof refusals): Provocation {
  return async () => {
    const provider = await startChatServer()
    onTestFinished(() => provider.close())
    provider.script(refusals[refusal])
    const allow = [{ ref: 'env:MODEL_KEY', hosts: [provider.host] }]
    const wb = await serveOverHttp(
      await open({
        config: { runtime: { secretRefs: { allow } } },
        environment: { MODEL_KEY: 'sk-of-a-test' },
      }),
    )
    const { workspaceId } = await makeWorkspace(wb)
    return wb.send(`POST /api/v1/workspaces/${workspaceId}/llm-services`, {
      name: 'model',
      provider: 'openai',
      modelName: 'nope',
      endpointBaseUrl: provider.url,
      credentialRef: 'env:MODEL_KEY',
    })
  }
}

export const models = {
  llm_model_not_chat: refusedModel('notChat'),
  llm_model_unavailable: refusedModel('unknownModel'),
} satisfies Provocations
