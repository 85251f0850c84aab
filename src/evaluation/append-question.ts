import { appendFileSync, existsSync } from 'node:fs'
import { quotePassage } from './judgment-file.ts'
import { readQuestions } from './read-questions.ts'

/** Returns the questions in a YAML file; none if it does not exist. @throws WbError validation_error */
export function readQuestionTexts(path: string): Set<string> {
  return new Set(existsSync(path) ? readQuestions(path).questions.map(({ text }) => text) : [])
}

/** Appends a question about a passage to a YAML file of questions. */
export function appendQuestion(
  path: string,
  question: string,
  { document, text }: { readonly document: string; readonly text: string },
): void {
  // JSON strings are valid in YAML.
  const [asked, name, quote] = [question, document, quotePassage(text)].map(value => JSON.stringify(value))
  appendFileSync(path, `- question: ${asked}\n  answers:\n    - { document: ${name}, text: ${quote} }\n`)
}
