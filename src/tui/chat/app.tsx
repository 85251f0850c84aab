import { Box, Static } from 'ink'
import { memo } from 'react'
import type { Clock } from '../../base/clock.ts'
import type { Highlight } from '../markdown/render.ts'
import type { Key } from '../parts/keys.ts'
import type { Paint } from '../parts/paint.ts'
import { PaintContext, Rows } from '../parts/rows.tsx'
import { useKeys } from '../parts/use-keys.ts'
import { LiveRegion } from './live-region.tsx'
import { PanelScreen } from './panel-screen.tsx'
import { Sources } from './sources.tsx'
import { type TranscriptLook, transcriptLines } from './transcript.ts'
import type { ChatState, TranscriptPart } from './types.ts'

/** A part of the conversation that does not change any more. */
export interface TranscriptItem {
  readonly key: number
  readonly part: TranscriptPart
  readonly look: TranscriptLook
}

export interface AppProps {
  readonly state: ChatState
  readonly highlight: Highlight | undefined
  readonly paint: Paint
  readonly clock: Clock
  onKey(key: Key): void
}

export interface ChatProps extends AppProps {
  /** Only grows, without the parts that were on the screen before. */
  readonly transcript: readonly TranscriptItem[]
  readonly isClosed: boolean
}

/** A conversation: finished parts, which scroll away, and the live region below them. */
export function ChatApp({ state, highlight, paint, clock, onKey, transcript, isClosed }: ChatProps) {
  useKeys(clock, onKey)
  return (
    <PaintContext value={paint}>
      <Static items={[...transcript]}>{item => <TranscriptBlock key={item.key} item={item} />}</Static>
      {!isClosed && <LiveRegion state={state} highlight={highlight} />}
    </PaintContext>
  )
}

const TranscriptBlock = memo(function TranscriptBlock({ item }: { item: TranscriptItem }) {
  const { part, look } = item
  return (
    <Box flexDirection="column">
      {part.kind === 'sources' ? (
        <Sources citations={part.citations} isUncited={part.isUncited ?? false} look={look} />
      ) : (
        <Rows lines={transcriptLines(part, look)} />
      )}
    </Box>
  )
})

/** A text or a list that fills the screen until the person goes back to the chat. */
export function PanelApp({ state, highlight, paint, clock, onKey }: AppProps) {
  useKeys(clock, onKey)
  return (
    <PaintContext value={paint}>
      {state.panel && <PanelScreen panel={state.panel} size={state.size} highlight={highlight} />}
    </PaintContext>
  )
}
