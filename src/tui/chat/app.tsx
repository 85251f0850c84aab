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
import { type Look, printedLines } from './transcript.ts'
import type { ChatState, Printed } from './types.ts'

/** A part of the conversation that does not change any more. */
export interface TranscriptItem {
  readonly key: number
  readonly printed: Printed
  readonly look: Look
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
  const { printed, look } = item
  return (
    <Box flexDirection="column">
      {printed.kind === 'sources' ? (
        <Sources citations={printed.citations} isUncited={printed.isUncited ?? false} look={look} />
      ) : (
        <Rows lines={printedLines(printed, look)} />
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
