import type { ExplainedShaping } from '../../contract/search-shaping.ts'
import type { RecordView, ScoredRecord } from '../../storage/content.ts'
import { baseKeyText } from '../document-key.ts'
import type { OrderedRanking } from './explanation.ts'
import type { BaseRanking } from './ranking.ts'

/** A candidate of a search, with the ranking that contains it. */
export interface RankedCandidate extends ScoredRecord {
  readonly source: OrderedRanking<BaseRanking>
}

/** A range of chunks of a document, by their indexes. */
export interface ChunkRange {
  readonly first: number
  readonly last: number
}

/** A candidate that stages may have changed. */
export interface ShapedCandidate extends RankedCandidate {
  readonly view: RecordView
  /** Changes of the score and rank by the stages. */
  readonly changes: ExplainedShaping
  /** Chunks to join; undefined to return the chunk alone. */
  readonly range?: ChunkRange
  /** Part of the range that consists of the candidate and of others that were merged into it. */
  readonly merged?: ChunkRange
}

/** Returns a key of the document of a candidate, whose ID is unique only in its knowledge base; null without a document. */
export function documentKeyText({ source, view }: Pick<ShapedCandidate, 'source' | 'view'>): string | null {
  return view.documentId === null ? null : `${baseKeyText(source.ranking.context.base)} ${view.documentId}`
}
