import type { SearchConstraints } from '../content.ts'
import type { Statistics, Visibility } from '../visibility.ts'

export interface LexicalQuery extends SearchConstraints {
  readonly text: string
  readonly limit: number
  readonly statistics: Statistics
}

export interface OccurrencesQuery {
  readonly words: readonly string[]
  readonly among: readonly number[]
  readonly visibility: Visibility
}
