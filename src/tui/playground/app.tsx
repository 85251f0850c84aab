import { Box, useCursor } from 'ink'
import type { Clock } from '../../base/clock.ts'
import type { Key } from '../parts/keys.ts'
import type { Paint } from '../parts/paint.ts'
import { PaintContext, Rows } from '../parts/rows.tsx'
import { cutLine, type Line } from '../parts/spans.ts'
import { TextField } from '../parts/text-field.tsx'
import { useKeys } from '../parts/use-keys.ts'
import { layoutPlayground, SIDE_COLUMNS } from './layout.ts'
import { resultLines } from './result-lines.ts'
import type { PlaygroundState } from './types.ts'

interface AppProps {
  readonly state: PlaygroundState
  readonly paint: Paint
  readonly clock: Clock
  onKey(key: Key): void
}

/** A search whose results appear while the user types. Fills the screen except for the last row, which Ink needs. */
export function PlaygroundApp({ state, paint, clock, onKey }: AppProps) {
  useKeys(clock, onKey)
  return (
    <PaintContext value={paint}>
      <PlaygroundScreen state={state} />
    </PaintContext>
  )
}

/** The question, the results with the settings beside them, and the equivalent command. */
export function PlaygroundScreen({ state }: { state: PlaygroundState }) {
  const layout = layoutPlayground(state)
  const { columns, rows } = state.size
  const { header, field, above, below, resultRows, resultColumns, side, cursor } = layout
  const { setCursorPosition } = useCursor()
  setCursorPosition(cursor)
  return (
    <Box flexDirection="column" width={columns} height={Math.max(1, rows - 1)} overflow="hidden">
      <Box flexDirection="column" flexShrink={0}>
        <Rows lines={[header]} />
        <TextField field={field} />
        <Rows lines={above} />
      </Box>
      <Box height={resultRows} flexShrink={0} overflow="hidden">
        <Results lines={resultLines(state, layout).slice(0, resultRows)} width={resultColumns} />
        {side && <SettingsColumn lines={side} height={resultRows} />}
      </Box>
      <Box flexDirection="column" flexShrink={0}>
        <Rows lines={below} />
      </Box>
    </Box>
  )
}

/** Passages, or the list of a panel. */
function Results({ lines, width }: { lines: readonly Line[]; width: number }) {
  return (
    <Box flexDirection="column" width={width} flexShrink={0}>
      <Rows lines={lines.map(line => cutLine(line, width))} />
    </Box>
  )
}

function SettingsColumn({ lines, height }: { lines: readonly Line[]; height: number }) {
  const width = SIDE_COLUMNS - 1
  return (
    <Box
      flexDirection="column"
      width={width}
      height={height}
      marginLeft={1}
      paddingLeft={1}
      overflow="hidden"
      borderStyle="single"
      borderDimColor
      borderTop={false}
      borderRight={false}
      borderBottom={false}
    >
      <Rows lines={lines.slice(0, height).map(line => cutLine(line, width - 2))} />
    </Box>
  )
}
