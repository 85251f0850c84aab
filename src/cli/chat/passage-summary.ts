import type { Passage } from '../passages/find-passages.ts'
import { stemsOf } from '../passages/matches.ts'
import { excerptWithSection, passageLocation, passageTitle } from '../passages/print-passages.ts'

/** A passage to show instead of an answer: title, lines that match the question, and location in the document. */
export interface PassageSummary {
  readonly title: string
  readonly lines: readonly string[]
  /** Empty if unknown. */
  readonly location: string
}

const linesMax = 4

/**
 * @param width  width of a line in cells
 * @param lines  maximum number of lines
 */
export function summarizePassage(
  passage: Passage,
  question: string,
  width: number,
  lines = linesMax,
): PassageSummary {
  const excerpt = excerptWithSection(passage, stemsOf(question), { width, lines })
  const name = passageTitle(passage)
  return {
    title: excerpt.section ? `${name} › ${excerpt.section}` : name,
    lines: excerpt.lines.map(({ text }) => text).filter(text => text !== ''),
    location: passageLocation(passage),
  }
}
