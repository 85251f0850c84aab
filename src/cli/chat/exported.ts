import type { Citation } from '../../contract/chat.ts'
import type { Conversation, Message } from '../../contract/conversations.ts'
import { citationsOf } from './citations.ts'
import { placeIn } from './sources.ts'

/** A conversation as a Markdown document: who said what, and the passages that were cited as footnotes. */
export function markdownOf(
  { title, conversationId, createdAt }: Conversation,
  agent: string,
  messages: readonly Message[],
): string {
  const parts = messages.map(message => spoken(message, agent))
  const notes = new Map(messages.flatMap(citationsOf).map(citation => [citation.number, citation]))
  const head = [`# ${title ?? `Conversation ${conversationId}`}`, `With ${agent}, begun ${createdAt}.`]
  const foot = [...notes.values()].sort((a, b) => a.number - b.number).map(footnote)
  return `${[...head, ...parts, ...(foot.length > 0 ? [foot.join('\n')] : [])].join('\n\n')}\n`
}

function spoken(message: Message, agent: string): string {
  const who = message.role === 'agent' ? agent : message.role === 'user' ? 'You' : 'System'
  const numbers = new Set(citationsOf(message).map(({ number }) => number))
  const content = (message.content ?? '').replace(/\[(\d{1,4})\](?!\()/g, (whole, number: string) =>
    numbers.has(Number(number)) ? `[^${number}]` : whole,
  )
  const isCut = message.metadata.interrupted === 'true'
  return `## ${who}\n\n${content}${isCut ? '\n\n*(interrupted)*' : ''}`
}

function footnote(citation: Citation): string {
  const { number, title, sourceFilename, documentId } = citation
  const name = title ?? sourceFilename ?? documentId ?? 'a record'
  const file = title !== null && sourceFilename
  return `[^${number}]: ${[name, file, placeIn(citation)].filter(Boolean).join(' · ')}`
}
