import type { Caller } from '../../access/caller.ts'
import type { SearchManyRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Excerpt } from '../tools/excerpt.ts'
import { bytesForTokens, citationMax, fitPassages, jsonBytes } from '../tools/passage-budget.ts'
import type { ToolPassage } from '../tools/tool.ts'
import type { Citations } from './citations.ts'
import type { DataTags } from './system-prompt.ts'

/** A passage that was retrieved for a question. */
export interface RetrievedPassage {
  readonly passage: ToolPassage
  readonly text: string
  /** Description of the folder of the passage; undefined if it has none, or an earlier passage shows it. */
  readonly folder?: string | undefined
}

/** Searches knowledge bases of a workspace, and returns passages, best first. */
export type RetrievePassages = (
  workspaceId: string,
  body: SearchManyRequest,
  caller: Pick<Caller, 'auth' | 'client' | 'reauthorize' | 'rowAccess' | 'signal'>,
) => Promise<readonly RetrievedPassage[]>

/** Result of a search before the first model request. */
export interface Grounding {
  /** The part of the system prompt that contains the passages. */
  readonly text: string
  readonly passages: readonly ToolPassage[]
  /** The query; undefined if there was no search. */
  readonly query: string | undefined
}

/** Grounding of a turn in which the model searches with tools. */
export const notSearchedGrounding: Grounding = { text: '', passages: [], query: undefined }

const nothingFoundGrounding = { text: 'Nothing was found for the question.', passages: [] }
const unneededGrounding: Grounding = {
  text: 'No search was made, because the message does not need one.',
  passages: [],
  query: undefined,
}

/** The citation numbers of a conversation, and the tags that enclose untrusted text in a prompt. */
export interface CitationContext {
  readonly citations: Citations
  readonly dataTags: DataTags
}

/** Query and limits of a retrieval. */
export interface RetrievalQuery {
  readonly workspaceId: string
  /** The query; undefined if the message needs no search. */
  readonly query: string | undefined
  readonly knowledgeBaseIds: readonly string[]
  /** Maximum number of passages if one knowledge base is searched. For n knowledge bases, it is √n times as high. */
  readonly retrievalK: number
  /** Maximum total number of tokens of the passages. */
  readonly passageTokens: number
}

/**
 * Searches for the passages of a prompt, for models without tools.
 *
 * @see docs/agents.md#models-without-tools
 */
export async function retrieveGrounding(
  { workspaceId, query, knowledgeBaseIds, retrievalK, passageTokens }: RetrievalQuery,
  context: CitationContext & { retrieve: RetrievePassages; caller: Parameters<RetrievePassages>[2] },
): Promise<Grounding> {
  if (query === undefined) return unneededGrounding
  if (knowledgeBaseIds.length === 0) return { ...nothingFoundGrounding, query: undefined }
  const searchedIds = knowledgeBaseIds.slice(0, limits.knowledgeBasesPerSearch)
  const body: SearchManyRequest = {
    text: query.slice(0, limits.searchTextChars),
    topK: Math.ceil(retrievalK * Math.sqrt(searchedIds.length)),
    knowledgeBaseIds: searchedIds,
    includeEmbeddings: false,
  }
  const retrieved = await context.retrieve(workspaceId, body, context.caller)
  if (retrieved.length === 0) return { ...nothingFoundGrounding, query }
  const formatted = formatEntries(retrieved, query, bytesForTokens(passageTokens), context.citations)
  return {
    text: `Passages found for the question:\n${context.dataTags.enclose('search', formatted.entries)}`,
    passages: formatted.passages,
    query,
  }
}

/** Formats passages for a prompt, with their citation numbers. Includes as many as fit into `bytesMax`, best first. */
export function formatEntries(
  retrieved: readonly RetrievedPassage[],
  query: string,
  bytesMax: number,
  citations: Citations,
): { entries: string; passages: ToolPassage[] } {
  const excerpts = fitPassages(
    retrieved.map(({ text }) => text),
    query,
    bytesMax,
    retrieved.map(headingBytesOf),
  )
  const included = retrieved.slice(0, excerpts.length)
  const entries = included.map((entry, at) =>
    entryOf(citations.numberOf(entry.passage, excerpts[at]!.text), headingOf(entry), excerpts[at]!),
  )
  return { entries: entries.join(separator), passages: included.map(({ passage }) => passage) }
}

/** Returns the maximum size in bytes of a formatted passage that is not truncated. */
export function bytesOfEntry(retrieved: RetrievedPassage): number {
  return headingBytesOf(retrieved) + jsonBytes(retrieved.text)
}

function headingBytesOf(retrieved: RetrievedPassage): number {
  return Buffer.byteLength(entryOf(citationMax, headingOf(retrieved), { text: '', isCut: true }) + separator)
}

function headingOf({ passage: { title, sourceFilename }, folder }: RetrievedPassage): string {
  return [title, sourceFilename, folder].filter(Boolean).join(' · ')
}

/** Separator of passages. */
const separator = '\n\n'

function entryOf(citation: number, head: string, { text, isCut }: Excerpt): string {
  return `[${citation}] ${head}${isCut ? ' (truncated)' : ''}\n${text}`
}
