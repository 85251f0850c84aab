import type { Caller } from '../../access/caller.ts'
import type { SearchMany } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Excerpt } from '../tools/excerpt.ts'
import { bytesFor, citationMax, jsonBytes, shareAmong } from '../tools/passage-budget.ts'
import type { Passage } from '../tools/tool.ts'
import type { Citations } from './citations.ts'
import type { Marks } from './prompt.ts'

/** A passage, and its text. */
export interface Found {
  readonly passage: Passage
  readonly text: string
}

/** Finds passages in some knowledge bases of a workspace, best first. */
export type Retrieve = (
  workspaceId: string,
  body: SearchMany,
  caller: Pick<Caller, 'visibility' | 'signal'>,
) => Promise<readonly Found[]>

/** What was found before a model is asked. */
export interface Grounding {
  /** For the system prompt. */
  readonly text: string
  readonly found: readonly Passage[]
  /** The query; undefined if there was no search. */
  readonly query: string | undefined
}

/** Of a turn in which the model searches by itself. */
export const notSearched: Grounding = { text: '', found: [], query: undefined }

const nothingFound = { text: 'Nothing was found for the question.', found: [] }
const notNeeded: Grounding = {
  text: 'No search was made: the message needs none.',
  found: [],
  query: undefined,
}

/** What numbers and encloses passages. */
export interface Citing {
  readonly citations: Citations
  readonly marks: Marks
}

/** What is looked for, and where. */
export interface Retrieval {
  readonly workspaceId: string
  /** The query; undefined if the message needs no search. */
  readonly query: string | undefined
  readonly knowledgeBaseIds: readonly string[]
  /** Passages of one knowledge base; several give the square root of their number as much, together. */
  readonly passagesPerBase: number
  /** Maximum tokens of all passages together. */
  readonly passageTokens: number
}

/**
 * Finds the passages for a question, for models without tools.
 *
 * @see docs/agents.md#models-without-tools
 */
export async function ground(
  { workspaceId, query, knowledgeBaseIds, passagesPerBase, passageTokens }: Retrieval,
  parts: Citing & { retrieve: Retrieve; caller: Parameters<Retrieve>[2] },
): Promise<Grounding> {
  if (query === undefined) return notNeeded
  if (knowledgeBaseIds.length === 0) return { ...nothingFound, query: undefined }
  const searched = knowledgeBaseIds.slice(0, limits.knowledgeBasesPerSearch)
  const body: SearchMany = {
    text: query.slice(0, limits.searchTextChars),
    topK: Math.ceil(passagesPerBase * Math.sqrt(searched.length)),
    knowledgeBaseIds: searched,
    includeEmbeddings: false,
  }
  const found = await parts.retrieve(workspaceId, body, parts.caller)
  if (found.length === 0) return { ...nothingFound, query }
  const told = entriesFor(found, query, bytesFor(passageTokens), parts.citations)
  return {
    text: `Passages found for the question:\n${parts.marks.around('search', told.entries)}`,
    found: told.found,
    query,
  }
}

/** Writes passages with their numbers, best first, as far as they fit. */
export function entriesFor(
  found: readonly Found[],
  query: string,
  bytesMax: number,
  citations: Citations,
): { entries: string; found: Passage[] } {
  const excerpts = shareAmong(
    found.map(({ text }) => text),
    query,
    bytesMax,
    found.map(headBytesOf),
  )
  const kept = found.slice(0, excerpts.length).map(({ passage }) => passage)
  const entries = kept.map((passage, at) =>
    entryOf(citations.numberOf(passage), headOf(passage), excerpts[at]!),
  )
  return { entries: entries.join(gap), found: kept }
}

/** Returns the maximum bytes of a whole passage with its number and name. */
export function bytesOfEntry(found: Found): number {
  return headBytesOf(found) + jsonBytes(found.text)
}

function headBytesOf({ passage }: Found): number {
  return Buffer.byteLength(entryOf(citationMax, headOf(passage), { text: '', isCut: true }) + gap)
}

function headOf({ title, sourceFilename }: Passage): string {
  return [title, sourceFilename].filter(Boolean).join(' · ')
}

/** Separator of passages. */
const gap = '\n\n'

function entryOf(citation: number, head: string, { text, isCut }: Excerpt): string {
  return `[${citation}] ${head}${isCut ? ' (truncated)' : ''}\n${text}`
}
