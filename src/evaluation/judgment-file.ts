import { appendFileSync, existsSync } from 'node:fs'
import type { JudgedQuestion, Judgment } from './question.ts'
import { readQuestions } from './read-questions.ts'

const quoteChars = 120

/** A judgment of a passage for a question. */
export interface QuestionJudgment extends Judgment {
  readonly question: string
}

/** Appends a judgment to a `.jsonl` file, which {@link readQuestions} reads. */
export function appendJudgment(path: string, { question, document, text, grade }: QuestionJudgment): void {
  appendFileSync(path, `${JSON.stringify({ question, document, text, grade })}\n`)
}

/** Returns the current judgments in a file; none if it does not exist. @throws WbError validation_error */
export function readJudgmentFile(path: string): QuestionJudgment[] {
  if (!existsSync(path)) return []
  return readQuestions(path).questions.flatMap(({ text: question, judgments }: JudgedQuestion) =>
    judgments.map(judgment => ({ ...judgment, question })),
  )
}

/**
 * Returns words from the middle of a passage, which identify it after the document was split in another way. Its start and
 * its end can also occur in the neighboring passages.
 */
export function quotePassage(text: string): string {
  const words = text.trim().replace(/\s+/g, ' ')
  if (words.length <= quoteChars) return words
  const start = Math.floor((words.length - quoteChars) / 2)
  const quote = words.slice(start, start + quoteChars)
  return quote.slice(quote.indexOf(' ') + 1, quote.lastIndexOf(' ')) || quote
}
