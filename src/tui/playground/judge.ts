import type { Passage } from '../../cli/passages/find-passages.ts'
import { type QuestionJudgment, quotePassage } from '../../evaluation/judgment-file.ts'
import type { PlaygroundResults, PlaygroundState, PlaygroundStep } from './types.ts'

/** Keys that judge a passage: its grade, from 0 (irrelevant) to 4 (complete answer). */
export const gradeKeys = '01234'

/** Returns a key for the judgments of a passage and a question. */
function judgmentKey(base: string, { question, document, text }: Omit<QuestionJudgment, 'grade'>): string {
  return JSON.stringify([base, question, document, text])
}

/** Returns grades by {@link judgmentKey}, of judgments by name of their knowledge base. */
export function gradesOf(
  judgments: ReadonlyMap<string, readonly QuestionJudgment[]>,
): PlaygroundState['grades'] {
  return new Map(
    Array.from(judgments, ([base, list]) =>
      list.map(judgment => [judgmentKey(base, judgment), judgment.grade] as const),
    ).flat(),
  )
}

/** Returns the grade of a passage for the question of its results; undefined if it was not judged. */
export function gradeOf(
  grades: PlaygroundState['grades'],
  { request }: PlaygroundResults,
  passage: Passage,
): number | undefined {
  const subject = subjectOf(request.body.text, passage)
  return subject && grades.get(judgmentKey(request.base.name, subject))
}

/** Judges the selected passage for the question of its results, which can differ from a question that is being typed. */
export function judgeSelected(state: PlaygroundState, grade: number): PlaygroundStep {
  const { results, selectedIndex, grades } = state
  const passage = results?.passages[selectedIndex]
  if (!results || !passage) return [{ ...state, notice: 'search first, then judge a passage' }, []]
  const subject = subjectOf(results.request.body.text, passage)
  if (!subject) return [{ ...state, notice: 'only passages of documents can be judged' }, []]
  const base = results.request.base.name
  return [
    { ...state, grades: new Map(grades).set(judgmentKey(base, subject), grade) },
    [{ type: 'judge', base, passage, judgment: { ...subject, grade } }],
  ]
}

function subjectOf(
  question: string | undefined,
  { document, text }: Passage,
): Omit<QuestionJudgment, 'grade'> | undefined {
  if (!document || question === undefined) return undefined
  const { sourceFilename, sourceDocId, documentId } = document
  return { question, document: sourceFilename ?? sourceDocId ?? documentId, text: quotePassage(text) }
}
