import { RowChanges } from './row-changes.ts'
import { createDraw, type ModelTarget, RowModelState } from './row-model-state.ts'
import { RowQuestions } from './row-questions.ts'

/**
 * A model of a workspace with row-level access: it makes random changes over the API, and compares the answers of content
 * routes with the reference evaluator, applied to the rows that the model expects.
 */
export class RowModel {
  readonly #state: RowModelState
  readonly #changes: RowChanges
  readonly #questions: RowQuestions

  private constructor(state: RowModelState) {
    this.#state = state
    this.#changes = new RowChanges(state)
    this.#questions = new RowQuestions(state)
  }

  /** Creates the principals and two knowledge bases with some rows. */
  static async create(target: ModelTarget, seed: number): Promise<RowModel> {
    const model = new RowModel(new RowModelState(target, createDraw(seed)))
    await model.#changes.prepare()
    return model
  }

  get report(): RowModelState['report'] {
    return this.#state.report
  }

  /** Makes a random change, then asks `questions` random requests. */
  async step(questions: number): Promise<void> {
    this.report.changes++
    await this.#changes.next()
    for (let asked = 0; asked < questions; asked++) await this.#questions.next()
  }
}
