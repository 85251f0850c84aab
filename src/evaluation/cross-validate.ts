import { randomNumbers } from '../base/random-numbers.ts'
import { mean } from './resample.ts'

const seed = 1

/** Scores of a candidate, one per question. All candidates have the same questions in the same order. */
export type CandidateScores = readonly number[]

export interface CrossValidation {
  /** Score of each question with the candidate that was chosen on the other folds. */
  readonly heldOut: readonly number[]
  /** Index of the candidate that was chosen for each fold. */
  readonly chosen: readonly number[]
  /** Index of the candidate that is best on all questions. */
  readonly best: number
}

/**
 * Chooses a candidate for each fold by the mean score on the other folds, and scores the fold with it. Of equally good
 * candidates, the first is chosen. The questions are assigned to folds at random, with a fixed seed.
 *
 * @param candidates  at least one
 * @param foldCount   from 2 to the number of questions
 */
export function crossValidate(candidates: readonly CandidateScores[], foldCount: number): CrossValidation {
  const questions = candidates[0]!.map((_, question) => question)
  const folds = assignFolds(questions.length, foldCount)
  const chosen = Array.from({ length: foldCount }, (_, fold) =>
    findBest(
      candidates,
      questions.filter(question => folds[question] !== fold),
    ),
  )
  return {
    heldOut: questions.map(question => candidates[chosen[folds[question]!]!]![question]!),
    chosen,
    best: findBest(candidates, questions),
  }
}

function findBest(candidates: readonly CandidateScores[], questions: readonly number[]): number {
  const means = candidates.map(scores => mean(questions.map(question => scores[question]!)))
  return means.indexOf(Math.max(...means))
}

/** Returns the fold of each question. The sizes of the folds differ by at most one. */
function assignFolds(questionCount: number, foldCount: number): number[] {
  const random = randomNumbers(seed)
  const folds = Array.from({ length: questionCount }, (_, question) => question % foldCount)
  for (let last = folds.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    ;[folds[last], folds[other]] = [folds[other]!, folds[last]!]
  }
  return folds
}
