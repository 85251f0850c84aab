import { WbError } from '../../contract/errors.ts'
import { type ImageInput, parseImageUrl } from '../../contract/images.ts'
import type { CompletionCreate, CompletionMessage } from '../../contract/openai.ts'

/** A user or assistant message of a request. */
export interface RequestMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
  readonly images: readonly ImageInput[]
}

/** A chat completions request, converted to the inputs of a turn. */
export interface CompletionRequest {
  /** Text of the system messages; null if there are none. */
  readonly instructions: string | null
  /** Alternating user and assistant messages. Consecutive messages with the same role are joined. */
  readonly earlierMessages: readonly RequestMessage[]
  readonly question: string
  readonly images: readonly ImageInput[]
  /** Maximum length of the answer in tokens; undefined if the client sets no limit. */
  readonly maxTokens: number | undefined
}

const separator = '\n\n'

/**
 * Converts a chat completions request to the inputs of a turn.
 *
 * @throws validation_error  the last message is not a user message with text
 */
export function parseCompletionRequest(body: CompletionCreate): CompletionRequest {
  const instructions: string[] = []
  const messages: RequestMessage[] = []
  for (const message of body.messages) {
    const content = textOf(message)
    const images = imagesOf(message)
    if (content.trim() === '' && images.length === 0) continue
    if (message.role === 'user' || message.role === 'assistant')
      addMessage(messages, { role: message.role, content, images })
    else instructions.push(content)
  }
  const question = messages.pop()
  if (question?.role !== 'user' || question.content.trim() === '')
    throw new WbError(
      'validation_error',
      'messages: the last message must have the role user and contain text',
    )
  return {
    instructions: instructions.length > 0 ? instructions.join(separator) : null,
    earlierMessages: messages,
    question: question.content,
    images: question.images,
    maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
  }
}

function addMessage(messages: RequestMessage[], next: RequestMessage): void {
  const last = messages.at(-1)
  if (last?.role !== next.role) messages.push(next)
  else {
    const content = [last.content, next.content].filter(text => text !== '').join(separator)
    messages.splice(-1, 1, { ...last, content, images: [...last.images, ...next.images] })
  }
}

function textOf({ content }: CompletionMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map(({ text }) => text ?? '').join('')
}

function imagesOf({ content }: CompletionMessage): ImageInput[] {
  if (!Array.isArray(content)) return []
  return content
    .filter(({ type }) => type === 'image_url')
    .map(({ image_url: image }) => parseImageUrl(image!.url) as ImageInput)
}
