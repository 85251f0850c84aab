import type { ChatModel } from '../../models/chat/chat-model.ts'
import type { Models } from '../../models/open.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { llmKind, serviceNotFound } from '../../workspaces/service-kinds.ts'

/** Context window in tokens to assume if it is unknown: the default of Ollama, or a size that most hosted models have. */
const fallbackContextTokens = { ollama: 8_192, hosted: 64_000 }

/** A chat model with a known context window. */
export interface AnsweringModel extends Omit<ChatModel, 'contextWindowTokens'> {
  /** Context window: maximum total number of tokens of the prompt and the answer. */
  readonly contextTokens: number
}

/** Opens the chat models of services and of the configuration. */
export type ChatModelSource = Pick<Models, 'openChat' | 'runtimeChat'>

/**
 * Opens the chat model of an LLM service, or the model of the configuration.
 *
 * @param llmServiceId  null for the model of the configuration
 * @throws llm_service_not_found, llm_provider_unsupported
 * @throws chat_disabled  `llmServiceId` is null, and the configuration has no usable chat provider
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
  const fallback = model.provider === 'ollama' ? fallbackContextTokens.ollama : fallbackContextTokens.hosted
  return { ...model, contextTokens: contextWindowTokens ?? fallback }
}
