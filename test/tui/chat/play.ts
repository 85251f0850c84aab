import type { Passage } from '../../../src/cli/passages/find-passages.ts'
import type { TurnEvent } from '../../../src/contract/chat.ts'
import type { Message } from '../../../src/contract/conversations.ts'
import type { Document } from '../../../src/contract/documents.ts'
import { startChat, stepChat } from '../../../src/tui/chat/state.ts'
import type { ChatEffect, ChatEvent, ChatState, TranscriptPart } from '../../../src/tui/chat/types.ts'

export const freshChat: ChatState = {
  ...startChat(
    { agent: 'Maven', knowledgeBases: ['papers'], servers: { '7f': 'issues' } },
    { columns: 80, rows: 24 },
    1_000,
  ),
  model: 'small',
}

/** Applies events to a state. Returns the last state and all effects. */
export function play(state: ChatState, ...events: ChatEvent[]): { state: ChatState; effects: ChatEffect[] } {
  const effects: ChatEffect[] = []
  let current = state
  for (const event of events) {
    const [next, more] = stepChat(current, event)
    current = next
    effects.push(...more)
  }
  return { state: current, effects }
}

export function submit(text: string): ChatEvent[] {
  return [{ type: 'typed', text }, { type: 'enter' }]
}

export function turnEvent<E extends TurnEvent['event']>(
  event: E,
  data: Extract<TurnEvent, { event: E }>['data'],
): ChatEvent {
  return { type: 'turn', event: { event, data } as TurnEvent }
}

export function message(
  role: 'user' | 'agent' | 'system',
  content: string,
  metadata: Record<string, string> = {},
): Message {
  return {
    workspaceId: 'w',
    chatId: 'c',
    messageId: `${role}-${content}`,
    messageTs: '2026-01-01T00:00:00.000Z',
    role,
    content,
    tokenCount: role === 'agent' ? 7 : null,
    metadata,
  }
}

/** A search result from a Markdown file about heated models. */
export function passage(text: string): Passage {
  const document = { sourceFilename: 'docs/models.md', metadata: { title: 'Heated\x1b[2J models' } }
  return {
    number: 1,
    score: 1,
    coverage: 1,
    id: 'c',
    knowledgeBaseId: 'k',
    text,
    documentId: 'd',
    chunkIndex: 2,
    document: document as Partial<Document> as Document,
  }
}

export function printedParts(effects: readonly ChatEffect[]): TranscriptPart[] {
  return effects.flatMap(effect => (effect.type === 'print' ? [effect.part] : []))
}

/** Returns the printed parts as text. */
export function printedText(effects: readonly ChatEffect[]): string[] {
  return printedParts(effects).map(one => {
    switch (one.kind) {
      case 'question':
        return `you: ${one.text}`
      case 'answer':
        return one.block.kind === 'code' ? one.block.lines.join('\n') : one.block.source.trim()
      case 'note':
        return `${one.tone}: ${one.text}`
      default:
        return one.kind
    }
  })
}
