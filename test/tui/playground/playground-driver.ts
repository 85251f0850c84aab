import { createElement } from 'react'
import type { Passage } from '../../../src/cli/passages/find-passages.ts'
import type { Document } from '../../../src/contract/documents.ts'
import { decode, emptyDecoder, flush, type Key } from '../../../src/tui/parts/keys.ts'
import { PlaygroundScreen } from '../../../src/tui/playground/app.tsx'
import type { PlaygroundBase, PlaygroundSearch, SearchResults } from '../../../src/tui/playground/port.ts'
import { type PlaygroundStart, startPlayground, stepPlayground } from '../../../src/tui/playground/state.ts'
import type { PlaygroundEffect, PlaygroundEvent, PlaygroundState } from '../../../src/tui/playground/types.ts'
import { rowsOf } from '../frame.ts'

export function base(name: string, more: Partial<PlaygroundBase> = {}): PlaygroundBase {
  return { id: `id-${name}`, name, description: '', isLexical: true, hasReranker: false, ...more }
}

export function passage(id: string, more: Partial<Passage> = {}): Passage {
  return {
    number: 1,
    score: 1,
    coverage: 1,
    id,
    knowledgeBaseId: 'id-papers',
    text: `what ${id} says`,
    documentId: null,
    chunkIndex: 0,
    document: undefined,
    ...more,
  }
}

export function documentNamed(sourceFilename: string): Document {
  return {
    workspaceId: '0190aaaa-0000-7000-8000-000000000001',
    knowledgeBaseId: 'id-papers',
    documentId: `id-${sourceFilename}`,
    sourceDocId: null,
    sourceFilename,
    fileType: null,
    fileSize: null,
    contentHash: null,
    chunkTotal: 1,
    ingestedAt: null,
    updatedAt: '2026-01-01T00:00:00.000Z',
    status: 'ready',
    errorMessage: null,
    metadata: {},
    visibleTo: null,
    ownerPrincipalId: null,
  }
}

export function searchResults(...ids: string[]): SearchResults {
  return {
    passages: ids.map((id, at) => passage(id, { score: 1 / (at + 1), coverage: 1 / (at + 1) })),
    tookMs: 7,
  }
}

/** Key codes that a terminal sends. */
export function keysOf(typed: string): Key[] {
  const [decoder, keys] = decode(emptyDecoder, typed)
  return [...keys, ...flush(decoder)[1]]
}

/** A playground without a terminal. */
export class PlaygroundDriver {
  state: PlaygroundState
  effects: PlaygroundEffect[]

  constructor(beginning: Partial<PlaygroundStart> = {}) {
    const bases = beginning.bases ?? [base('papers')]
    const [state, effects] = startPlayground({
      target: {
        workspaceId: '0190aaaa-0000-7000-8000-000000000001',
        workspace: 'demo',
        url: 'https://wb.example',
        hasCredential: true,
        flags: [],
      },
      bases,
      base: bases.length === 1 ? bases[0] : undefined,
      question: '',
      grades: new Map(),
      size: { columns: 100, rows: 30 },
      nowMs: 0,
      ...beginning,
    })
    this.state = state
    this.effects = [...effects]
  }

  event(...events: PlaygroundEvent[]): this {
    for (const event of events) {
      const [state, effects] = stepPlayground(this.state, event)
      this.state = state
      this.effects.push(...effects)
    }
    return this
  }

  type(typed: string): this {
    // A pause separates Escape from the following key.
    for (const part of typed.split(/(?<=\x1b)(?![[O\d])/)) this.event(...keysOf(part))
    return this
  }

  answer(...ids: string[]): this {
    return this.event({ type: 'searched', serial: this.state.serial, results: searchResults(...ids) })
  }

  /** Body of the last search. */
  get request(): PlaygroundSearch['body'] | undefined {
    return this.effects.findLast(effect => effect.type === 'search')?.request.body
  }

  get lines(): string[] {
    return rowsOf(createElement(PlaygroundScreen, { state: this.state }), this.state.size.columns)
  }

  get screen(): string {
    return this.lines.join('\n')
  }
}
