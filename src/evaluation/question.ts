/** A passage or document that answers a question, or helps to answer it. */
export interface Judgment {
  /** File name, source ID or ID of a document, or the end of its path. */
  readonly document: string
  /** Heading that the passage must contain. */
  readonly heading?: string
  /** Text that the passage must contain. */
  readonly text?: string
  /** Usefulness of the answer: 0 is irrelevant, higher is better. */
  readonly grade: number
}

/** A question with the answers that a search should find. */
export interface JudgedQuestion {
  /** Unique in its file. */
  readonly id: string
  readonly text: string
  readonly judgments: readonly Judgment[]
}

/** Highest grade of judgments that people make. It is also the default of an answer in a questions file. */
export const gradeMax = 4

/** Returns the questions that have at least one relevant judgment. Others cannot be measured. */
export function answeredQuestions(questions: readonly JudgedQuestion[]): JudgedQuestion[] {
  return questions.filter(({ judgments }) => judgments.some(({ grade }) => grade > 0))
}
