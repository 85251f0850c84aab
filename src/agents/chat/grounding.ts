import type { Caller } from '../../access/caller.ts'
import type { SearchMany } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Excerpt } from '../tools/excerpt.ts'
import { bytesForTokens, citationMax, jsonBytes, shareAmong } from '../tools/passage-budget.ts'
import type { ToolPassage } from '../tools/tool.ts'
import type { Citations } from './citations.ts'
import type { QuoteMarks } from './system-prompt.ts'

/** A passage that was retrieved for a question. */
export interface RetrievedPassage {
  readonly passage: ToolPassage
  readonly text: string
}

/** Finds passages in some knowledge bases of a workspace, best first. */
export type RetrievePassages = (
  workspaceId: string,
  body: SearchMany,
  caller: Pick<Caller, 'visibility' | 'signal'>,
) => Promise<readonly RetrievedPassage[]>

/** Result of the search before a model request. */
export interface Grounding {
  /** Part of the system prompt with the passages. */
  readonly text: string
  readonly found: readonly ToolPassage[]
  /** The query; undefined if there was no search. */
  readonly query: string | undefined
}

/** Grounding of a turn in which the model searches with tools. */
export const notSearchedGrounding: Grounding = { text: '', found: [], query: undefined }

const nothingFoundGrounding = { text: 'Nothing was found for the question.', found: [] }
const unneededGrounding: Grounding = {
  text: 'No search was made: the message needs none.',
  found: [],
  query: undefined,
}

/** Citation numbers of a conversation, and the marks that enclose passages in a prompt. */
export interface CitationContext {
  readonly citations: Citations
  readonly marks: QuoteMarks
}

/** Query and limits of a retrieval. */
export interface RetrievalQuery {
  readonly workspaceId: string
  /** The query; undefined if the message needs no search. */
  readonly query: string | undefined
  readonly knowledgeBaseIds: readonly string[]
  /** Maximum passages of one knowledge base; n knowledge bases together give √n times as many. */
  readonly passagesPerBase: number
  /** Maximum tokens of all passages together. */
  readonly passageTokens: number
}

/**
 * Finds the passages for a question, for models without tools.
 *
 * @see docs/agents.md#models-without-tools
 */
export async function retrieveGrounding(
  { workspaceId, query, knowledgeBaseIds, passagesPerBase, passageTokens }: RetrievalQuery,
  parts: CitationContext & { retrieve: RetrievePassages; caller: Parameters<RetrievePassages>[2] },
): Promise<Grounding> {
  if (query === undefined) return unneededGrounding
  if (knowledgeBaseIds.length === 0) return { ...nothingFoundGrounding, query: undefined }
  const searched = knowledgeBaseIds.slice(0, limits.knowledgeBasesPerSearch)
  const body: SearchMany = {
    text: query.slice(0, limits.searchTextChars),
    topK: Math.ceil(passagesPerBase * Math.sqrt(searched.length)),
    knowledgeBaseIds: searched,
    includeEmbeddings: false,
  }
  const found = await parts.retrieve(workspaceId, body, parts.caller)
  if (found.length === 0) return { ...nothingFoundGrounding, query }
  const formatted = formatEntries(found, query, bytesForTokens(passageTokens), parts.citations)
  return {
    text: `Passages found for the question:\n${parts.marks.around('search', formatted.entries)}`,
    found: formatted.found,
    query,
  }
}

/** Formats passages with their citation numbers, best first, as many as fit into `bytesMax`. */
export function formatEntries(
  found: readonly RetrievedPassage[],
  query: string,
  bytesMax: number,
  citations: Citations,
): { entries: string; found: ToolPassage[] } {
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
export function bytesOfEntry(found: RetrievedPassage): number {
  return headBytesOf(found) + jsonBytes(found.text)
}

function headBytesOf({ passage }: RetrievedPassage): number {
  return Buffer.byteLength(entryOf(citationMax, headOf(passage), { text: '', isCut: true }) + gap)
}

function headOf({ title, sourceFilename }: ToolPassage): string {
  return [title, sourceFilename].filter(Boolean).join(' · ')
}

/** Separator of passages. */
const gap = '\n\n'

function entryOf(citation: number, head: string, { text, isCut }: Excerpt): string {
  return `[${citation}] ${head}${isCut ? ' (truncated)' : ''}\n${text}`
}
