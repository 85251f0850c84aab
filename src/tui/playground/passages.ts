import type { Key } from '../parts/keys.ts'
import type { Line } from '../parts/spans.ts'
import { type CardOptions, cardHeight, cardLines } from './cards.ts'
import { layoutPlayground, type PlaygroundLayout } from './layout.ts'
import type { PlaygroundResults, PlaygroundState } from './types.ts'

function cardOptions(
  { at, isOpen, showsNumbers }: PlaygroundState,
  { width }: PlaygroundLayout,
  index: number,
): CardOptions {
  return { width, showsNumbers, isChosen: index === at, isOpen: isOpen && index === at }
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
  const seen: Line[] = []
  let start = 0
  for (const [index, height] of cardHeights(state, layout).entries()) {
    const end = start + height
    if (end > top && start < top + layout.room)
      seen.push(
        ...cardLines(results, index, cardOptions(state, layout, index)).slice(Math.max(0, top - start)),
      )
    start = end
  }
  return pending || failure ? seen.map(dimLine) : seen
}

function dimLine(line: Line): Line {
  return line.map(({ text }) => ({ text, tones: ['dim'] }))
}

/** Returns the first and the last line of the selected passage. */
function selectedLines(state: PlaygroundState, layout: PlaygroundLayout): { start: number; end: number } {
  const all = cardHeights(state, layout)
  const start = sum(all.slice(0, state.at))
  // The blank line at its end does not have to be visible.
  return { start, end: start + Math.max(0, (all[state.at] ?? 0) - 1) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Scrolls until the selected passage is visible; if it is longer than the screen, until it fills the screen. */
export function scrollToSelected(state: PlaygroundState): PlaygroundState {
  if (!state.results) return state
  const layout = layoutPlayground(state)
  const { start, end } = selectedLines(state, layout)
  const room = Math.max(1, layout.room)
  const isTall = end - start > room
  const [least, most] = isTall ? [start, end - room] : [end - room, start]
  const top = Math.max(0, Math.min(most, Math.max(least, state.top)))
  return top === state.top ? state : { ...state, top }
}

type SelectionKey = Extract<Key['type'], 'up' | 'down' | 'pageUp' | 'pageDown'>

/** Scrolls through a passage that is shown in full; at its end, selects another passage. */
export function moveSelection(state: PlaygroundState, key: SelectionKey): PlaygroundState {
  const { results, isOpen, top } = state
  if (!results || results.passages.length === 0) return state
  const layout = layoutPlayground(state)
  const room = Math.max(1, layout.room)
  const { start, end } = selectedLines(state, layout)
  const isDown = key === 'down' || key === 'pageDown'
  const isPage = key === 'pageUp' || key === 'pageDown'
  const linesLeft = isDown ? end - (top + room) : top - start
  if (isOpen && linesLeft > 0) {
    const by = Math.min(linesLeft, isPage ? room : 1)
    return { ...state, top: top + (isDown ? by : -by) }
  }
  const by = isPage ? Math.max(1, Math.floor(room / averageHeight(results, state, layout))) : 1
  const at = Math.max(0, Math.min(results.passages.length - 1, state.at + (isDown ? by : -by)))
  return at === state.at ? state : { ...state, at, isOpen: false }
}

/** Returns the average number of lines of a passage that is not shown in full. */
function averageHeight(
  { passages }: PlaygroundResults,
  state: PlaygroundState,
  layout: PlaygroundLayout,
): number {
  return sum(cardHeights({ ...state, isOpen: false }, layout)) / passages.length
}
