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
import { type TranscriptOptions, transcriptLines } from './transcript.ts'
import type { ChatState, TranscriptPart } from './types.ts'

/** A printed part of the conversation. It does not change. */
export interface TranscriptItem {
  readonly key: number
  readonly part: TranscriptPart
  readonly options: TranscriptOptions
}

export interface AppProps {
  readonly state: ChatState
  readonly highlight: Highlight | undefined
  readonly paint: Paint
  readonly clock: Clock
  onKey(key: Key): void
}

export interface ChatProps extends AppProps {
  /** Parts to print. The list only grows, and excludes parts that an earlier app has printed. */
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
  return (
    <Box flexDirection="column">
      <Rows lines={transcriptLines(item.part, item.options)} />
    </Box>
  )
})

/** A text or a list that fills the screen until the user returns to the chat. */
export function PanelApp({ state, highlight, paint, clock, onKey }: AppProps) {
  useKeys(clock, onKey)
  return (
    <PaintContext value={paint}>
      {state.panel && <PanelScreen panel={state.panel} size={state.size} highlight={highlight} />}
    </PaintContext>
  )
}
