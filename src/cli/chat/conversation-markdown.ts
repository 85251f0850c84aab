import type { Attachment } from '../../contract/attachments.ts'
import type { Citation } from '../../contract/chat.ts'
import type { Conversation, Message } from '../../contract/conversations.ts'
import { citationLocation } from './citation-source.ts'
import { citationsOf } from './citations.ts'
import { imageLines } from './images.ts'
import { unsupportedList, unsupportedSentences } from './unsupported.ts'

/** Returns a conversation as Markdown, with the names of its attachments, and cited passages as footnotes. */
export function conversationMarkdown(
  { title, conversationId, createdAt }: Conversation,
  agent: string,
  messages: readonly Message[],
  attachments: readonly Attachment[] = [],
): string {
  const footnotes = new Footnotes()
  const parts = messages.map(message => messageMarkdown(message, agent, footnotes))
  const head = [`# ${title ?? `Conversation ${conversationId}`}`, `With ${agent}, started ${createdAt}.`]
  if (attachments.length > 0)
    head.push(`Attached: ${attachments.map(({ filename }) => filename).join(', ')}.`)
  return `${[...head, ...parts, footnotes.text].filter(Boolean).join('\n\n')}\n`
}

function messageMarkdown(message: Message, agent: string, footnotes: Footnotes): string {
  const author = { agent, user: 'You', system: 'Summary of earlier messages' }[message.role]
  const numbers = new Map(
    citationsOf(message).map(citation => [citation.number, footnotes.numberOf(citation)]),
  )
  const content = (message.content ?? '').replace(/\[(\d{1,4})\](?!\()/g, (match, number: string) =>
    numbers.has(Number(number)) ? `[^${numbers.get(Number(number))}]` : match,
  )
  const isInterrupted = message.metadata.interrupted === 'true'
  const parts = [
    content,
    ...imageLines(message),
    unsupportedMarkdown(message),
    ...(isInterrupted ? ['*(interrupted)*'] : []),
  ]
  return [`## ${author}`, ...parts.filter(Boolean)].join('\n\n')
}

function unsupportedMarkdown(message: Message): string {
  const sentences = unsupportedSentences(message)
  const { heading, items } = unsupportedList(sentences)
  return sentences.length === 0 ? '' : [heading, '', ...items.map(item => `- ${item}`)].join('\n')
}

/** Collects the cited passages of a conversation. In old conversations, several passages can have the same number. */
class Footnotes {
  readonly #citations = new Map<number, Citation>()

  /** Returns the footnote number: the number of the citation, or the next free one if another passage has it. */
  numberOf(citation: Citation): number {
    let { number } = citation
    while (this.#isTaken(number, citation)) number++
    this.#citations.set(number, citation)
    return number
  }

  #isTaken(number: number, { knowledgeBaseId, chunkId }: Citation): boolean {
    const existing = this.#citations.get(number)
    return (
      existing !== undefined && (existing.chunkId !== chunkId || existing.knowledgeBaseId !== knowledgeBaseId)
    )
  }

  get text(): string {
    const sorted = [...this.#citations].sort(([a], [b]) => a - b)
    return sorted.map(([number, citation]) => footnote(number, citation)).join('\n')
  }
}

function footnote(number: number, citation: Citation): string {
  const { title, sourceFilename, documentId } = citation
  const name = title ?? sourceFilename ?? documentId ?? 'a record'
  const file = title !== null && sourceFilename
  return `[^${number}]: ${[name, file, citationLocation(citation)].filter(Boolean).join(' · ')}`
}
