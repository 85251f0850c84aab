import type { Key } from '../parts/keys.ts'
import type { Line } from '../parts/spans.ts'
import { type CardLook, cardHeight, cardLines } from './cards.ts'
import { type Frame, frameOf } from './frame.ts'
import type { Answer, State } from './types.ts'

function lookOf({ at, isOpen, hasNumbers }: State, { width }: Frame, place: number): CardLook {
  return { width, hasNumbers, isChosen: place === at, isOpen: isOpen && place === at }
}

/** Lines that each passage takes, in order. */
function heights(state: State, frame: Frame): readonly number[] {
  const { answer } = state
  if (!answer) return []
  return answer.passages.map((_, place) => cardHeight(answer, place, lookOf(state, frame, place)))
}

/** The passages that are seen, as lines; those of older answers than what is asked for are dim. */
export function passageLines(state: State, frame: Frame): readonly Line[] {
  const { answer, top, asking, failure } = state
  if (!answer) return []
  const seen: Line[] = []
  let start = 0
  for (const [place, height] of heights(state, frame).entries()) {
    const end = start + height
    if (end > top && start < top + frame.room)
      seen.push(...cardLines(answer, place, lookOf(state, frame, place)).slice(Math.max(0, top - start)))
    start = end
  }
  return asking || failure ? seen.map(dimmed) : seen
}

function dimmed(line: Line): Line {
  return line.map(({ text }) => ({ text, tones: ['dim'] }))
}

/** Where the chosen passage begins and ends, in lines. */
function chosenAt(state: State, frame: Frame): { start: number; end: number } {
  const all = heights(state, frame)
  const start = sum(all.slice(0, state.at))
  // A blank line ends it, which need not be seen.
  return { start, end: start + Math.max(0, (all[state.at] ?? 0) - 1) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** The same with the chosen passage on the screen; of one that is longer than the screen, a part. */
export function chosenSeen(state: State): State {
  if (!state.answer) return state
  const frame = frameOf(state)
  const { start, end } = chosenAt(state, frame)
  const room = Math.max(1, frame.room)
  const isTall = end - start > room
  const [least, most] = isTall ? [start, end - room] : [end - room, start]
  const top = Math.max(0, Math.min(most, Math.max(least, state.top)))
  return top === state.top ? state : { ...state, top }
}

type Way = Extract<Key['type'], 'up' | 'down' | 'pageUp' | 'pageDown'>

/** Choose another passage; one that is shown whole is read to its end first. */
export function moved(state: State, way: Way): State {
  const { answer, isOpen, top } = state
  if (!answer || answer.passages.length === 0) return state
  const frame = frameOf(state)
  const room = Math.max(1, frame.room)
  const { start, end } = chosenAt(state, frame)
  const isDown = way === 'down' || way === 'pageDown'
  const isPage = way === 'pageUp' || way === 'pageDown'
  const left = isDown ? end - (top + room) : top - start
  if (isOpen && left > 0) {
    const by = Math.min(left, isPage ? room : 1)
    return { ...state, top: top + (isDown ? by : -by) }
  }
  const by = isPage ? Math.max(1, Math.floor(room / heightOf(answer, state, frame))) : 1
  const at = Math.max(0, Math.min(answer.passages.length - 1, state.at + (isDown ? by : -by)))
  return at === state.at ? state : { ...state, at, isOpen: false }
}

/** Lines of a passage that is not shown whole, on average. */
function heightOf({ passages }: Answer, state: State, frame: Frame): number {
  return sum(heights({ ...state, isOpen: false }, frame)) / passages.length
}
