import type { Key } from '../parts/keys.ts'
import type { Line } from '../parts/spans.ts'
import { type CardLook, cardHeight, cardLines } from './cards.ts'
import { layoutPlayground, type PlaygroundLayout } from './layout.ts'
import type { PlaygroundAnswer, PlaygroundState } from './types.ts'

function lookOf(
  { at, isOpen, hasNumbers }: PlaygroundState,
  { width }: PlaygroundLayout,
  place: number,
): CardLook {
  return { width, hasNumbers, isChosen: place === at, isOpen: isOpen && place === at }
}

/** Returns the number of lines of each passage. */
function cardHeights(state: PlaygroundState, layout: PlaygroundLayout): readonly number[] {
  const { answer } = state
  if (!answer) return []
  return answer.passages.map((_, place) => cardHeight(answer, place, lookOf(state, layout, place)))
}

/** Returns the lines of the visible passages, dimmed if they belong to an earlier request. */
export function passageLines(state: PlaygroundState, layout: PlaygroundLayout): readonly Line[] {
  const { answer, top, pending, failure } = state
  if (!answer) return []
  const seen: Line[] = []
  let start = 0
  for (const [place, height] of cardHeights(state, layout).entries()) {
    const end = start + height
    if (end > top && start < top + layout.room)
      seen.push(...cardLines(answer, place, lookOf(state, layout, place)).slice(Math.max(0, top - start)))
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
  // The blank line at its end need not be visible.
  return { start, end: start + Math.max(0, (all[state.at] ?? 0) - 1) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Scrolls to the selected passage, or to a part of it if it is longer than the screen. */
export function scrollToSelected(state: PlaygroundState): PlaygroundState {
  if (!state.answer) return state
  const layout = layoutPlayground(state)
  const { start, end } = selectedLines(state, layout)
  const room = Math.max(1, layout.room)
  const isTall = end - start > room
  const [least, most] = isTall ? [start, end - room] : [end - room, start]
  const top = Math.max(0, Math.min(most, Math.max(least, state.top)))
  return top === state.top ? state : { ...state, top }
}

type SelectionKey = Extract<Key['type'], 'up' | 'down' | 'pageUp' | 'pageDown'>

/** Selects another passage, or first scrolls through one that is shown in full. */
export function moveSelection(state: PlaygroundState, way: SelectionKey): PlaygroundState {
  const { answer, isOpen, top } = state
  if (!answer || answer.passages.length === 0) return state
  const layout = layoutPlayground(state)
  const room = Math.max(1, layout.room)
  const { start, end } = selectedLines(state, layout)
  const isDown = way === 'down' || way === 'pageDown'
  const isPage = way === 'pageUp' || way === 'pageDown'
  const left = isDown ? end - (top + room) : top - start
  if (isOpen && left > 0) {
    const by = Math.min(left, isPage ? room : 1)
    return { ...state, top: top + (isDown ? by : -by) }
  }
  const by = isPage ? Math.max(1, Math.floor(room / averageHeight(answer, state, layout))) : 1
  const at = Math.max(0, Math.min(answer.passages.length - 1, state.at + (isDown ? by : -by)))
  return at === state.at ? state : { ...state, at, isOpen: false }
}

/** Returns the average number of lines of a passage that is not shown in full. */
function averageHeight(
  { passages }: PlaygroundAnswer,
  state: PlaygroundState,
  layout: PlaygroundLayout,
): number {
  return sum(cardHeights({ ...state, isOpen: false }, layout)) / passages.length
}
