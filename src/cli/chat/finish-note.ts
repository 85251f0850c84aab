import type { Message } from '../../contract/conversations.ts'

/** Returns the reason why an answer ended early; undefined if the model finished it. */
export function finishNote({ metadata }: Pick<Message, 'metadata'>): string | undefined {
  if (metadata.finish_reason === 'length') return 'the answer is cut off: the model reached its output limit'
  if (metadata.finish_reason === 'content_filter')
    return 'a content filter of the provider stopped the answer'
  return undefined
}
