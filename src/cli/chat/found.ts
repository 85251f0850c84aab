import type { Passage } from '../passages/find-passages.ts'
import { stemsOf } from '../passages/matches.ts'
import { excerptWithSection, passageLocation, passageTitle } from '../passages/print-passages.ts'

/** A passage in place of an answer: what it is called, what of it bears on the question, and where it stands. */
export interface FoundCard {
  readonly title: string
  readonly lines: readonly string[]
  /** Empty where nothing is known of it. */
  readonly place: string
}

const linesMax = 4

/** @param width  of a line, in cells */
export function foundCard(passage: Passage, question: string, width: number, lines = linesMax): FoundCard {
  const shown = excerptWithSection(passage, stemsOf(question), { width, lines })
  const name = passageTitle(passage)
  return {
    title: shown.section ? `${name} › ${shown.section}` : name,
    lines: shown.lines.map(({ text }) => text).filter(text => text !== ''),
    place: passageLocation(passage),
  }
}
