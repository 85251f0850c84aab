import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { createAgent, openRestrictedWorkspace } from './restricted-workspace.ts'
import { RowModel } from './row-model.ts'

const runs = 2
const stepsPerRun = 60
const questionsPerStep = 4

// `npm run bench:decisions` makes a million decisions.
test('content routes answer as the reference evaluator decides, after any changes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), async seed => {
      const opened = await openRestrictedWorkspace({ server: true, sentenceModel: fakeSentenceModel() })
      const agent = await createAgent(opened)
      const model = await RowModel.create({ ...opened, operatorId: null, agent }, seed)
      for (let step = 0; step < stepsPerRun; step++) await model.step(questionsPerStep)
      const { leaks, refusals, decisions } = model.report
      expect({ leaks, refusals }).toEqual({ leaks: [], refusals: [] })
      expect(decisions).toBeGreaterThan(100)
    }),
    { numRuns: runs, endOnFailure: true },
  )
})
