import { shellWord } from '../../base/shell-word.ts'
import { UsageError } from '../errors.ts'

/** Search options of each `--mode`. @see docs/searching.md */
const optionsOfMode = {
  hybrid: { hybrid: true },
  lexical: { hybrid: true, lexicalWeight: 1 },
  vector: { hybrid: false },
} as const

export type SearchMode = keyof typeof optionsOfMode
export const modeNames = ['hybrid', 'lexical', 'vector'] as const satisfies readonly SearchMode[]

/** Ranking options of a search. The runtime uses its defaults for omitted options. */
export interface RankingSettings {
  readonly mode?: SearchMode
  /** Weight of the lexical score, 0 to 1. */
  readonly lexicalWeight?: number
  readonly rerank?: boolean
}

/** Parses the value of a flag, a number from 0 to 1. @throws UsageError */
export function parseShare(flag: string, text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= 0 && value <= 1) return value
  throw new UsageError(`${flag} takes a number from 0 to 1, not "${text}"`)
}

/**
 * Returns the ranking options of a search request.
 *
 * @throws UsageError  when a weight is combined with a mode that uses only words or only vectors
 */
export function rankingOptions({ mode, lexicalWeight, rerank }: RankingSettings) {
  if (lexicalWeight === undefined) return { ...(mode && optionsOfMode[mode]), rerank }
  if (mode === 'lexical' || mode === 'vector')
    throw new UsageError(`--lexical-weight cannot be combined with --mode ${mode}`)
  return { ...optionsOfMode.hybrid, lexicalWeight, rerank }
}

/**
 * Checks the arguments of a search. A question of several words must be in quotes, and `--saved` requires a knowledge
 * base.
 *
 * @param searchAllCommand  command that searches all knowledge bases, without the question
 * @throws UsageError  with the corrected command
 */
export function requireClearQuestion(
  words: readonly string[],
  { all, saved, searchAllCommand }: { all: boolean; saved?: string; searchAllCommand: string },
): void {
  const question = `"${words.join(' ')}"`
  if (words.length > (all ? 1 : 2))
    throw new UsageError(
      'put a question of several words in quotes',
      all ? [`${searchAllCommand} ${question}`] : [`wb kb search ${question}`, suggestBaseFirst(words)],
    )
  if (all && saved !== undefined)
    throw new UsageError('--saved needs a knowledge base', [
      `wb kb search NAME QUESTION --saved ${shellWord(saved)}`,
    ])
}

/** Returns the command for the case that the first word is the knowledge base. */
function suggestBaseFirst([first, ...rest]: readonly string[]): string {
  return `wb kb search ${first} "${rest.join(' ')}"`
}
