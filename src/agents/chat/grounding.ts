import type { Caller } from '../../access/caller.ts'
import type { SearchManyRequest } from '../../contract/knowledge.ts'
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
  body: SearchManyRequest,
  caller: Pick<Caller, 'visibility' | 'signal'>,
) => Promise<readonly RetrievedPassage[]>

/** Result of the search before a model request. */
export interface Grounding {
  /** Part of the system prompt with the passages. */
  readonly text: string
  readonly passages: readonly ToolPassage[]
  /** The query; undefined if there was no search. */
  readonly query: string | undefined
}

/** Grounding of a turn in which the model searches with tools. */
export const notSearchedGrounding: Grounding = { text: '', passages: [], query: undefined }

const nothingFoundGrounding = { text: 'Nothing was found for the question.', passages: [] }
const unneededGrounding: Grounding = {
  text: 'No search was made: the message needs none.',
  passages: [],
  query: undefined,
}

/** The citation numbers of a conversation, and the marks that enclose passages in a prompt. */
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
  /** Maximum number of passages from one knowledge base. A search in n knowledge bases returns √n times as many. */
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
  const body: SearchManyRequest = {
    text: query.slice(0, limits.searchTextChars),
    topK: Math.ceil(passagesPerBase * Math.sqrt(searched.length)),
    knowledgeBaseIds: searched,
    includeEmbeddings: false,
  }
  const retrieved = await parts.retrieve(workspaceId, body, parts.caller)
  if (retrieved.length === 0) return { ...nothingFoundGrounding, query }
  const formatted = formatEntries(retrieved, query, bytesForTokens(passageTokens), parts.citations)
  return {
    text: `Passages found for the question:\n${parts.marks.enclose('search', formatted.entries)}`,
    passages: formatted.passages,
    query,
  }
}

/** Formats passages with their citation numbers, best first, as many as fit into `bytesMax`. */
export function formatEntries(
  retrieved: readonly RetrievedPassage[],
  query: string,
  bytesMax: number,
  citations: Citations,
): { entries: string; passages: ToolPassage[] } {
  const excerpts = shareAmong(
    retrieved.map(({ text }) => text),
    query,
    bytesMax,
    retrieved.map(headBytesOf),
  )
  const passages = retrieved.slice(0, excerpts.length).map(({ passage }) => passage)
  const entries = passages.map((passage, at) =>
    entryOf(citations.numberOf(passage), headOf(passage), excerpts[at]!),
  )
  return { entries: entries.join(separator), passages }
}

/** Returns the maximum size in bytes of a formatted passage that is not truncated. */
export function bytesOfEntry(retrieved: RetrievedPassage): number {
  return headBytesOf(retrieved) + jsonBytes(retrieved.text)
}

function headBytesOf({ passage }: RetrievedPassage): number {
  return Buffer.byteLength(entryOf(citationMax, headOf(passage), { text: '', isCut: true }) + separator)
}

function headOf({ title, sourceFilename }: ToolPassage): string {
  return [title, sourceFilename].filter(Boolean).join(' · ')
}

/** Separator of passages. */
const separator = '\n\n'

function entryOf(citation: number, head: string, { text, isCut }: Excerpt): string {
  return `[${citation}] ${head}${isCut ? ' (truncated)' : ''}\n${text}`
}
