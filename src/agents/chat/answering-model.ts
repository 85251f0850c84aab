import type { ChatModel } from '../../models/chat/chat-model.ts'
import type { Models } from '../../models/open.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { llmKind, serviceNotFound } from '../../workspaces/service-kinds.ts'

/** Of models that do not tell their window: Ollama's usual one, and what hosted models have at least. */
const contextTokensUnknown = { ollama: 8_192, hosted: 64_000 }

/** A model that answers, and its bounds. */
export interface AnsweringModel extends Omit<ChatModel, 'contextWindowTokens'> {
  /** Of question and answer together. */
  readonly contextTokens: number
}

/** What opens the models that agents answer with. */
export type ChatModelSource = Pick<Models, 'openChat' | 'runtimeChat'>

/**
 * The model that answers for an agent: of the service that is named, else the agent's, else the runtime's own.
 *
 * @param llmServiceId  null is the runtime's own
 * @throws llm_service_not_found, llm_provider_unsupported
 * @throws chat_disabled  no service is named, and the configuration gives no chat provider that works
 */
export async function openAnsweringModel(
  { rows, models }: { rows: RowStore; models: ChatModelSource },
  workspaceId: string,
  llmServiceId: string | null,
): Promise<AnsweringModel> {
  if (llmServiceId === null) return withContextTokens(models.runtimeChat())
  const stored = await rows.get(tables.llmServices, [workspaceId, llmServiceId])
  if (!stored) throw serviceNotFound(llmKind, llmServiceId)
  return withContextTokens(models.openChat(stored.row))
}

function withContextTokens({ contextWindowTokens, ...model }: ChatModel): AnsweringModel {
  const usual = model.provider === 'ollama' ? contextTokensUnknown.ollama : contextTokensUnknown.hosted
  return { ...model, contextTokens: contextWindowTokens ?? usual }
}
