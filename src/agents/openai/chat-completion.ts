import type { Citation } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { WbError } from '../../contract/errors.ts'
import {
  type ChatCompletion,
  type ChatCompletionChunk,
  type CompletionFinishReason,
  completionFinishReasons,
  type Usage,
} from '../../contract/openai.ts'

/** Fields that all objects of one response share. */
export interface CompletionIdentity {
  readonly id: string
  readonly created: number
  readonly model: string
}

/** Converts an answer to one unstreamed completion. @throws chat_answer_failed */
export function toChatCompletion(identity: CompletionIdentity, answer: Message): ChatCompletion {
  if (answer.metadata.finish_reason === 'error') throw answerFailed(answer)
  const usage = usageOf(answer)
  return {
    ...identity,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: answer.content ?? '',
          refusal: null,
          references: referencesOf(answer),
        },
        logprobs: null,
        finish_reason: finishReasonOf(answer),
      },
    ],
    ...(usage && { usage }),
  }
}

type ChunkDelta = ChatCompletionChunk['choices'][number]['delta']

/** Creates the chunks of a streamed answer. */
export class CompletionChunks {
  readonly #identity: CompletionIdentity
  readonly #includesUsage: boolean

  /** @param includesUsage  true to send token counts in an additional last chunk; `usage` is null in all others */
  constructor(identity: CompletionIdentity, includesUsage: boolean) {
    this.#identity = identity
    this.#includesUsage = includesUsage
  }

  first(): ChatCompletionChunk {
    return this.#chunk({ role: 'assistant', content: '', refusal: null })
  }

  text(content: string): ChatCompletionChunk {
    return this.#chunk({ content })
  }

  /** Returns the chunks that end the stream: references and finish reason, then the usage if requested. */
  last(answer: Message): ChatCompletionChunk[] {
    const end = this.#chunk({ references: referencesOf(answer) }, finishReasonOf(answer))
    if (!this.#includesUsage) return [end]
    return [end, { ...this.#base(), choices: [], usage: usageOf(answer) ?? null }]
  }

  #chunk(delta: ChunkDelta, finish_reason: CompletionFinishReason | null = null): ChatCompletionChunk {
    return {
      ...this.#base(),
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      ...(this.#includesUsage && { usage: null }),
    }
  }

  #base(): CompletionIdentity & Pick<ChatCompletionChunk, 'object'> {
    return { ...this.#identity, object: 'chat.completion.chunk' }
  }
}

/** Returns the error of a failed turn. Tools may have run, so clients must not retry automatically. */
export function answerFailed({ metadata }: Message): WbError {
  return new WbError('chat_answer_failed', metadata.error_message ?? 'the model did not answer', {
    headers: { 'x-should-retry': 'false' },
  })
}

function referencesOf({ metadata }: Message): Citation[] {
  return metadata.citations ? (JSON.parse(metadata.citations) as Citation[]) : []
}

function finishReasonOf({ metadata }: Message): CompletionFinishReason {
  return completionFinishReasons.find(reason => reason === metadata.finish_reason) ?? 'stop'
}

/** Returns the token counts of all model calls in the turn; undefined if the provider reports none. */
function usageOf({ metadata }: Message): Usage | undefined {
  if (metadata.prompt_tokens === undefined && metadata.completion_tokens === undefined) return undefined
  const prompt_tokens = Number(metadata.prompt_tokens ?? 0)
  const completion_tokens = Number(metadata.completion_tokens ?? 0)
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}
