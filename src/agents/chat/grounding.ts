import type { Caller } from '../../access/caller.ts'
import type { SearchMany } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
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
}

/** Of a turn in which the model searches by itself. */
export const notSearched: Grounding = { text: '', found: [] }

const nothingFound: Grounding = { text: 'Nothing was found for the question.', found: [] }

/** What is looked for, and where. */
export interface Retrieval {
  readonly workspaceId: string
  readonly question: string
  readonly knowledgeBaseIds: readonly string[]
  /** Passages of one knowledge base; several give the square root of their number as much, together. */
  readonly passagesPerBase: number
}

/**
 * Find what a question is answered from, for models that are given no tools.
 *
 * @see docs/agents.md#what-the-model-is-told
 */
export async function ground(
  { workspaceId, question, knowledgeBaseIds, passagesPerBase }: Retrieval,
  parts: { retrieve: Retrieve; caller: Parameters<Retrieve>[2]; citations: Citations; marks: Marks },
): Promise<Grounding> {
  if (knowledgeBaseIds.length === 0) return nothingFound
  const searched = knowledgeBaseIds.slice(0, limits.knowledgeBasesPerSearch)
  const body: SearchMany = {
    text: question.slice(0, limits.searchTextChars),
    topK: Math.ceil(passagesPerBase * Math.sqrt(searched.length)),
    knowledgeBaseIds: searched,
    includeEmbeddings: false,
  }
  const found = await parts.retrieve(workspaceId, body, parts.caller)
  if (found.length === 0) return nothingFound
  const entries = found.map(({ passage, text }) => {
    const head = [passage.title, passage.sourceFilename].filter(Boolean).join(' · ')
    return `[${parts.citations.numberOf(passage)}] ${head}\n${text}`
  })
  return {
    text: `Passages found for the question:\n${parts.marks.around('search', entries.join('\n\n'))}`,
    found: found.map(({ passage }) => passage),
  }
}
