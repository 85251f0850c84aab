import * as Flags from '@oclif/core/flags'
import { appendJudgment, type QuestionJudgment, readJudgmentFile } from '../../evaluation/judgment-file.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { withUsageErrors } from './load-questions.ts'

/** Flag of commands that store judgments. */
export const judgmentsFlag = Flags.string({
  summary: 'file for grades, which wb eval run reads [KB.judgments.jsonl]',
  helpValue: 'FILE',
})

/** Files of judgments: one file for each knowledge base, in the working directory, or one file for all of them. */
export class JudgmentFiles {
  /** @param path  file for all knowledge bases, as typed */
  constructor(
    private readonly cwd: string,
    private readonly path: string | undefined,
  ) {}

  /** Returns the stored judgments by knowledge base. @throws UsageError  a file is invalid */
  read(bases: readonly string[]): ReadonlyMap<string, readonly QuestionJudgment[]> {
    const read = (base: string) => readJudgmentFile(resolveTypedPath(this.cwd, this.#pathOf(base)))
    return withUsageErrors(() => new Map(bases.map(base => [base, read(base)])))
  }

  /** Stores a judgment, and returns the path of its file as typed. @throws Error  it cannot be written */
  append(base: string, judgment: QuestionJudgment): string {
    const path = this.#pathOf(base)
    appendJudgment(resolveTypedPath(this.cwd, path), judgment)
    return path
  }

  #pathOf(base: string): string {
    return this.path ?? `${base}.judgments.jsonl`
  }
}
