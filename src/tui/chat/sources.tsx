import type { Citation } from '../../contract/chat.ts'
import { Rows } from '../parts/rows.tsx'
import { sourceLines, type TranscriptOptions } from './transcript.ts'

interface SourcesProps {
  readonly citations: readonly Citation[]
  /** True if the answer used these passages, but cites none of them. */
  readonly isUncited: boolean
  readonly options: TranscriptOptions
}

/** Lists the passages of an answer with their numbers. */
export function Sources({ citations, isUncited, options }: SourcesProps) {
  return <Rows lines={sourceLines(citations, isUncited, options)} />
}
