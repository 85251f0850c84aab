import { UsageError } from '../faults.ts'
import { shellWord } from '../terminal/shell-word.ts'

/** How `--mode` maps onto a search request. @see docs/searching.md */
const modes = {
  hybrid: { hybrid: true },
  lexical: { hybrid: true, lexicalWeight: 1 },
  vector: { hybrid: false },
} as const

export type Mode = keyof typeof modes
export const modeNames = ['hybrid', 'lexical', 'vector'] as const satisfies readonly Mode[]

/** How passages are ranked; what is left out is the choice of the runtime. */
export interface Ranking {
  readonly mode?: Mode
  /** Share of the words, 0 to 1. */
  readonly lexicalWeight?: number
  readonly rerank?: boolean
}

/**
 * The part of a search request that says how passages are ranked.
 *
 * @throws UsageError  a weight where only words or only meaning count
 */
export function rankingOf({ mode, lexicalWeight, rerank }: Ranking) {
  if (lexicalWeight === undefined) return { ...(mode && modes[mode]), rerank }
  if (mode === 'lexical' || mode === 'vector')
    throw new UsageError(`--lexical-weight is for --mode hybrid, as ${mode} has no other share`)
  return { ...modes.hybrid, lexicalWeight, rerank }
}

/**
 * @param everywhere  how all knowledge bases are searched: what is typed before the question
 * @throws UsageError  words that are no question, or a saved filter that no knowledge base is named for
 */
export function refuseUnclear(
  words: readonly string[],
  { all, saved, everywhere }: { all: boolean; saved?: string; everywhere: string },
): void {
  const whole = `"${words.join(' ')}"`
  if (words.length > (all ? 1 : 2))
    throw new UsageError(
      'a question of several words stands in quotes',
      all ? [`${everywhere} ${whole}`] : [`wb kb search ${whole}`, butFirst(words)],
    )
  if (all && saved !== undefined)
    throw new UsageError('--saved belongs to one knowledge base', [
      `wb kb search NAME QUESTION --saved ${shellWord(saved)}`,
    ])
}

/** The other thing that may be meant: the first word names the knowledge base. */
function butFirst([first, ...rest]: readonly string[]): string {
  return `wb kb search ${first} "${rest.join(' ')}"`
}
