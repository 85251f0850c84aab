import { expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { ingestSentences, readSpaceState, sentence } from '../harness/fitted-spaces.ts'
import { type Base, baseIn, makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

/** Checks that two runtimes give equal responses. */
async function requireSameAnswers(mine: Base, theirs: Base): Promise<void> {
  for (const fields of [{ hybrid: false }, { lexicalWeight: 1 }, {}]) {
    const expected = await mine.search('the rotor flutters under pressure', fields)
    expect(await theirs.search('the rotor flutters under pressure', fields)).toEqual(expected)
  }
  expect(await theirs.show()).toEqual(await mine.show())
  expect(await theirs.documents()).toEqual(await mine.documents())
}

test.each([
  ['a command follows a server', true, false],
  ['a server follows a command', false, true],
])('%s after each addition, change, deletion and refit', async (_, mineThreaded, theirsThreaded) => {
  const wb = await open({ threads: mineThreaded })
  const mine = await makeBase(wb)
  const other = await open({ threads: theirsThreaded, dataDir: wb.dataDir })
  const theirs = baseIn(other, { ...mine.params, name: mine.name })
  const { params } = mine
  const steps: (() => Promise<unknown>)[] = [
    () => ingestSentences(mine, 0, 12),
    () => wb.settle(),
    () => ingestSentences(mine, 12, 15),
    async () => {
      const [first] = await mine.documents()
      await wb.call(documents.delete, { params: { ...params, documentId: first!.documentId } })
    },
    async () => {
      const [first] = await mine.documents()
      await wb.call(documents.update, {
        params: { ...params, documentId: first!.documentId },
        body: { metadata: { title: 'The rotor' } },
      })
    },
    () => mine.ingest(sentence(3_000), { sourceFilename: 'rotor.md' }),
    () => mine.ingest(sentence(3_001), { sourceFilename: 'rotor.md', overwriteOnNameConflict: true }),
    () => wb.settle(),
    () => ingestSentences(theirs, 20, 22),
    () => other.settle(),
  ]
  for (const step of steps) {
    await step()
    await requireSameAnswers(mine, theirs)
  }
  expect(readSpaceState(wb.dataDir, mine)).toEqual({ generation: 3, unfitted: 0, records: 17 })
})

test('a knowledge base that another runtime deletes and creates again is the new one', async () => {
  const wb = await open()
  const mine = await makeBase(wb, { name: 'same' })
  await ingestSentences(mine, 0, 12)
  await wb.settle()
  const other = await open({ dataDir: wb.dataDir })
  const { workspaceId } = mine.params
  await mine.search('rotor')
  await baseIn(other, { ...mine.params, name: 'same' }).delete()
  const theirs = await makeBase(other, { workspaceId, name: 'same' })
  await ingestSentences(theirs, 500, 512)
  await other.settle()
  await requireSameAnswers(theirs, baseIn(wb, { ...theirs.params, name: 'same' }))
  await expect(mine.search('rotor')).rejects.toMatchObject({ code: 'knowledge_base_not_found' })
})
