import { Box, useCursor } from 'ink'
import type { Highlight } from '../markdown/render.ts'
import { Rows } from '../parts/rows.tsx'
import { cutLine, type Line, lineWidth, type StyledSpan, span } from '../parts/spans.ts'
import { type FieldLayout, TextField } from '../parts/text-field.tsx'
import { activityLines } from './activity.ts'
import { approvalLines } from './approval.ts'
import { findCompletions } from './completion.ts'
import { layoutComposer } from './composer.ts'
import { StatusBar } from './status-bar.tsx'
import type { ChatState } from './types.ts'

/** Minimum width of a screen to frame the composer. */
const FRAMED_COLUMNS_MIN = 24
/** Minimum height of a screen to show more than the composer or the approval prompt. */
const FULL_ROWS_MIN = 6

/** Layout of the live region: the parts of the screen that change, from top to bottom. */
export interface LiveLayout {
  readonly activity: readonly Line[]
  /** The approval prompt, shown instead of the composer. */
  readonly approval: readonly Line[] | undefined
  readonly composer: FieldLayout
  /** Words that complete a command, shown instead of the status bar. */
  readonly completions: Line | undefined
  readonly hasStatusBar: boolean
  /** Position of the cursor, from the top left of the first part. */
  readonly cursor: { readonly x: number; readonly y: number }
}

/**
 * Lays out the live region. It always has fewer rows than the screen, because Ink clears the terminal and its
 * scrollback if its output is as high as the screen (https://github.com/vadimdemedes/ink/issues/990).
 */
export function layoutLiveRegion(state: ChatState, highlight?: Highlight): LiveLayout {
  const { columns, rows } = state.size
  const rowsMax = Math.max(1, rows - 1)
  const isFull = rows >= FULL_ROWS_MIN
  const pending = state.turn?.pendingApprovals[0]
  const footerRows = isFull ? 1 : 0
  const composer = layoutComposer(state, {
    isFramed: isFull && columns >= FRAMED_COLUMNS_MIN,
    linesMax: Math.max(1, Math.floor(rowsMax / 3)),
  })
  const approval = pending && approvalLines(state, pending).slice(-(rowsMax - footerRows))
  const fieldRows = approval ? approval.length : composer.height
  const rowsLeft = rowsMax - fieldRows - footerRows
  const gap: Line[] = isFull && rowsLeft > 0 ? [[]] : []
  const activityRows = rowsLeft - gap.length
  const lines = activityRows > 0 ? activityLines(state, highlight).slice(-activityRows) : []
  const linesAbove = [...lines, ...gap].map(line => cutLine(line, columns))
  const words = state.input.completion?.candidates.words ?? (pending ? [] : findCompletions(state).words)
  const cursor = approval ? { x: lineWidth(approval.at(-1)!) + 1, y: approval.length - 1 } : composer.cursor
  return {
    activity: linesAbove,
    approval: approval?.map(line => cutLine(line, columns)),
    composer,
    completions:
      isFull && words.length > 0
        ? cutLine(completionsLine(words, state.input.completion?.index, columns), columns)
        : undefined,
    hasStatusBar: isFull,
    cursor: { x: Math.min(cursor.x, columns - 1), y: linesAbove.length + cursor.y },
  }
}

/** The part of the screen that changes, below the printed transcript. */
export function LiveRegion({ state, highlight }: { state: ChatState; highlight: Highlight | undefined }) {
  const layout = layoutLiveRegion(state, highlight)
  const { setCursorPosition } = useCursor()
  setCursorPosition(layout.cursor)
  return (
    <Box flexDirection="column" width={state.size.columns}>
      <Rows lines={layout.activity} />
      {layout.approval ? <Rows lines={layout.approval} /> : <TextField field={layout.composer} />}
      {layout.completions ? (
        <Rows lines={[layout.completions]} />
      ) : (
        layout.hasStatusBar && <StatusBar state={state} />
      )}
    </Box>
  )
}

/** Returns the words that fit in a row, scrolled so that the chosen word is visible. */
function completionsLine(words: readonly string[], selectedIndex: number | undefined, columns: number): Line {
  const rowOf = (first: number, end: number): StyledSpan[] => [
    span(first > 0 ? '… ' : '  '),
    ...words
      .slice(first, end)
      .flatMap((word, index): StyledSpan[] => [
        span(index > 0 ? '  ' : ''),
        span(word, first + index === selectedIndex ? 'inverse' : 'dim'),
      ]),
    span(end < words.length ? '  …' : '', 'dim'),
  ]
  const fits = (first: number, end: number) => lineWidth(rowOf(first, end)) <= columns
  const chosen = selectedIndex ?? 0
  let first = 0
  while (first < chosen && !fits(first, chosen + 1)) first++
  let end = chosen + 1
  while (end < words.length && fits(first, end + 1)) end++
  return rowOf(first, end)
}
