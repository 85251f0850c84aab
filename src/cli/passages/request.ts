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

/** Ranking options. Omitted options use the default of the runtime. */
export interface RankingSettings {
  readonly mode?: SearchMode
  /** Weight of the lexical score, 0 to 1. */
  readonly lexicalWeight?: number
  readonly rerank?: boolean
}

/**
 * Returns the ranking options of a search request.
 *
 * @throws UsageError  when a weight is combined with a mode that ranks by words or vectors only
 */
export function rankingOptions({ mode, lexicalWeight, rerank }: RankingSettings) {
  if (lexicalWeight === undefined) return { ...(mode && optionsOfMode[mode]), rerank }
  if (mode === 'lexical' || mode === 'vector')
    throw new UsageError(`--lexical-weight cannot be combined with --mode ${mode}`)
  return { ...optionsOfMode.hybrid, lexicalWeight, rerank }
}

/**
 * @param everywhere  command to search all knowledge bases, up to the question
 * @throws UsageError  when the words are not a question, or a saved filter is given without a knowledge base
 */
export function requireClearQuestion(
  words: readonly string[],
  { all, saved, everywhere }: { all: boolean; saved?: string; everywhere: string },
): void {
  const whole = `"${words.join(' ')}"`
  if (words.length > (all ? 1 : 2))
    throw new UsageError(
      'put a question of several words in quotes',
      all ? [`${everywhere} ${whole}`] : [`wb kb search ${whole}`, suggestBaseFirst(words)],
    )
  if (all && saved !== undefined)
    throw new UsageError('--saved needs a knowledge base', [
      `wb kb search NAME QUESTION --saved ${shellWord(saved)}`,
    ])
}

/** Suggests the command for an alternative meaning: the first word is the knowledge base. */
function suggestBaseFirst([first, ...rest]: readonly string[]): string {
  return `wb kb search ${first} "${rest.join(' ')}"`
}
