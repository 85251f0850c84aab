import type { SearchConstraints } from '../content.ts'
import type { Statistics, Visibility } from '../visibility.ts'

export interface LexicalQuery extends SearchConstraints {
  readonly text: string
  readonly limit: number
  readonly statistics: Statistics
  /** True if the last word of the text is not complete. */
  readonly isTyping?: boolean | undefined
}

export interface ExplainQuery extends Omit<LexicalQuery, 'limit'> {
  /** Numbers of the records to explain. */
  readonly among: readonly number[]
}

export interface OccurrencesQuery {
  readonly words: readonly string[]
  readonly among: readonly number[]
  readonly visibility: Visibility
}
