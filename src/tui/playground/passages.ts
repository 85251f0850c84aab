import type { Key } from '../parts/keys.ts'
import type { Line } from '../parts/spans.ts'
import { type CardOptions, cardHeight, cardLines } from './cards.ts'
import { layoutPlayground, type PlaygroundLayout } from './layout.ts'
import type { PlaygroundResults, PlaygroundState } from './types.ts'

function cardOptions(
  { selectedIndex, isOpen, showsNumbers, showsReasons, grades }: PlaygroundState,
  { resultColumns: width }: PlaygroundLayout,
  index: number,
): CardOptions {
  const isChosen = index === selectedIndex
  return {
    width,
    showsNumbers,
    grades,
    isChosen,
    isOpen: isOpen && isChosen,
    showsReasons: showsReasons && isChosen,
  }
}

/** Returns the number of lines of each passage. */
function cardHeights(state: PlaygroundState, layout: PlaygroundLayout): readonly number[] {
  const { results } = state
  if (!results) return []
  return results.passages.map((_, index) => cardHeight(results, index, cardOptions(state, layout, index)))
}

/** Returns the lines of the visible passages, dimmed if they belong to an earlier request. */
export function passageLines(state: PlaygroundState, layout: PlaygroundLayout): readonly Line[] {
  const { results, top, pending, failure } = state
  if (!results) return []
  const visible: Line[] = []
  let start = 0
  for (const [index, height] of cardHeights(state, layout).entries()) {
    const end = start + height
    if (end > top && start < top + layout.resultRows)
      visible.push(
        ...cardLines(results, index, cardOptions(state, layout, index)).slice(Math.max(0, top - start)),
      )
    start = end
  }
  return pending || failure ? visible.map(dimLine) : visible
}

function dimLine(line: Line): Line {
  return line.map(({ text }) => ({ text, tones: ['dim'] }))
}

/** Returns the first and the last line of the selected passage. */
function selectedLines(state: PlaygroundState, layout: PlaygroundLayout): { start: number; end: number } {
  const all = cardHeights(state, layout)
  const start = sum(all.slice(0, state.selectedIndex))
  // The blank line at the end of the passage does not have to be visible.
  return { start, end: start + Math.max(0, (all[state.selectedIndex] ?? 0) - 1) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Scrolls until the selected passage is visible. A passage that is longer than the screen fills the screen. */
export function scrollToSelected(state: PlaygroundState): PlaygroundState {
  if (!state.results) return state
  const layout = layoutPlayground(state)
  const { start, end } = selectedLines(state, layout)
  const visibleRows = Math.max(1, layout.resultRows)
  const isTall = end - start > visibleRows
  const [topMin, topMax] = isTall ? [start, end - visibleRows] : [end - visibleRows, start]
  const top = Math.max(0, Math.min(topMax, Math.max(topMin, state.top)))
  return top === state.top ? state : { ...state, top }
}

type SelectionKey = Extract<Key['type'], 'up' | 'down' | 'pageUp' | 'pageDown'>

/** Selects another passage. If the selected passage is shown in full, first scrolls through it. */
export function moveSelection(state: PlaygroundState, key: SelectionKey): PlaygroundState {
  const { results, isOpen, top } = state
  if (!results || results.passages.length === 0) return state
  const layout = layoutPlayground(state)
  const visibleRows = Math.max(1, layout.resultRows)
  const { start, end } = selectedLines(state, layout)
  const isDown = key === 'down' || key === 'pageDown'
  const isPage = key === 'pageUp' || key === 'pageDown'
  const linesLeft = isDown ? end - (top + visibleRows) : top - start
  if (isOpen && linesLeft > 0) {
    const distance = Math.min(linesLeft, isPage ? visibleRows : 1)
    return { ...state, top: top + (isDown ? distance : -distance) }
  }
  const distance = isPage ? Math.max(1, Math.floor(visibleRows / averageHeight(results, state, layout))) : 1
  const newIndex = Math.max(
    0,
    Math.min(results.passages.length - 1, state.selectedIndex + (isDown ? distance : -distance)),
  )
  return newIndex === state.selectedIndex ? state : { ...state, selectedIndex: newIndex, isOpen: false }
}

/** Returns the average number of lines of a passage that is not shown in full. */
function averageHeight(
  { passages }: PlaygroundResults,
  state: PlaygroundState,
  layout: PlaygroundLayout,
): number {
  return sum(cardHeights({ ...state, isOpen: false }, layout)) / passages.length
}
