import type { Citation } from '../../contract/chat.ts'
import { Rows } from '../parts/rows.tsx'
import { sourceLines, type TranscriptLook } from './transcript.ts'

interface SourcesProps {
  readonly citations: readonly Citation[]
  /** The answer used these passages, but cites none of them. */
  readonly isUncited: boolean
  readonly look: TranscriptLook
}

/** The passages of an answer, with the numbers that open them. */
export function Sources({ citations, isUncited, look }: SourcesProps) {
  return <Rows lines={sourceLines(citations, isUncited, look)} />
}
