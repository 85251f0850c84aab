import type { Passage } from '../passages/find-passages.ts'
import { stemsOf } from '../passages/matches.ts'
import { excerptWithSection, passageLocation, passageTitle } from '../passages/print-passages.ts'

/** A passage that is shown instead of an answer: its title, the lines that match the question, and its source. */
export interface PassageSummary {
  readonly title: string
  readonly lines: readonly string[]
  /** Empty if unknown. */
  readonly place: string
}

const linesMax = 4

/** @param width  width of a line in cells */
export function summarizePassage(
  passage: Passage,
  question: string,
  width: number,
  lines = linesMax,
): PassageSummary {
  const shown = excerptWithSection(passage, stemsOf(question), { width, lines })
  const name = passageTitle(passage)
  return {
    title: shown.section ? `${name} › ${shown.section}` : name,
    lines: shown.lines.map(({ text }) => text).filter(text => text !== ''),
    place: passageLocation(passage),
  }
}
