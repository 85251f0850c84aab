import { WbError } from '../../contract/errors.ts'
import type { EvalResult } from '../../evaluation/eval-result.ts'
import { answeredQuestions, type JudgedQuestion } from '../../evaluation/question.ts'
import { type QuestionSet, readQuestions } from '../../evaluation/read-questions.ts'
import { readResult } from '../../evaluation/result-file.ts'
import { UsageError } from '../errors.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'

/**
 * Reads the questions of a typed path, without those that have no relevant judgment.
 *
 * @throws UsageError  the file is missing or invalid, or no question has a relevant judgment
 */
export function loadQuestions(cwd: string, path: string, split: string | undefined): QuestionSet {
  const { questions, hash } = withUsageErrors(() => readQuestions(resolveTypedPath(cwd, path), split))
  const answered: JudgedQuestion[] = answeredQuestions(questions)
  if (answered.length === 0) throw new UsageError(`${path} has no question with a relevant answer`)
  return { questions: answered, hash }
}

/** Reads a result from a typed path. @throws UsageError  the file is missing or invalid */
export function loadResult(cwd: string, path: string): EvalResult {
  return withUsageErrors(() => readResult(resolveTypedPath(cwd, path)))
}

/** Reports invalid files as errors of the command line, so that their exit status differs from that of a failed gate. */
export function withUsageErrors<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof WbError) throw new UsageError(error.message, [error.hint])
    throw error
  }
}
