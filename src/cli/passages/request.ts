import { UsageError } from '../faults.ts'
import { shellWord } from '../shell-word.ts'

/** How `--mode` maps onto a search request. @see contract: lexical alone */
export const modes = {
  hybrid: { hybrid: true },
  lexical: { hybrid: true, lexicalWeight: 1 },
  vector: { hybrid: false },
} as const

/** @throws UsageError  words that are no question, or a saved filter that no knowledge base is named for */
export function refuseUnclear(
  words: readonly string[],
  { all, saved }: { all: boolean; saved?: string },
): void {
  if (words.length > (all ? 1 : 2))
    throw new UsageError('a question of several words stands in quotes', quoted(words, all))
  if (all && saved !== undefined)
    throw new UsageError('--saved belongs to one knowledge base', [
      `wb kb search NAME QUESTION --saved ${shellWord(saved)}`,
    ])
}

/** What was probably meant: all of it, or all but the first word. */
function quoted(words: readonly string[], all: boolean): string[] {
  const [first, ...rest] = words
  if (all) return [`wb kb search --all "${words.join(' ')}"`]
  return [`wb kb search "${words.join(' ')}"`, `wb kb search ${first} "${rest.join(' ')}"`]
}
