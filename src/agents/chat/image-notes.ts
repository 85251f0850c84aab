import type { ChatMessage } from '../../models/chat/completion.ts'

/** Returns the text of a question, with a note if images are omitted. */
export function textWithoutImages(content: string, count: number): string {
  if (count === 0) return content
  const note = count === 1 ? '[1 image is left out here.]' : `[${count} images are left out here.]`
  return content === '' ? note : `${content}\n\n${note}`
}

/** Replaces the images of a message with a note. Returns other messages unchanged. */
export function withoutImages(message: ChatMessage): ChatMessage {
  if (message.role !== 'user' || !message.images) return message
  return { role: 'user', content: textWithoutImages(message.content, message.images.length) }
}
