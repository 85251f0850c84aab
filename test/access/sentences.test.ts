import { expect, test } from 'vitest'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { openRestrictedWorkspace } from './restricted-workspace.ts'

const question = { text: 'throw away a token' }

test('the sentence model finds no hidden passage, and a hidden passage changes no score', async () => {
  const model = fakeSentenceModel(['revoke', 'throw'], ['key', 'token'])
  const { wb, base, operator, as } = await openRestrictedWorkspace({ sentenceModel: model })
  const ingest = (text: string, ...readers: string[]) =>
    operator(`POST ${base}/ingest`, { text, visibleTo: readers })
  await ingest('Revoke a key when somebody leaves.', 'alice', 'bob')
  await ingest('Throw the ball to the dog.', 'alice', 'bob')
  await wb.settle()
  const before = (await as('bob')(`POST ${base}/search`, question)).body
  await ingest('Keys: how to revoke them.', 'alice')
  await wb.settle()
  const after = (await as('bob')(`POST ${base}/search`, question)).body
  expect(after).toEqual(before)
  const texts = (body: unknown) =>
    (body as { payload: { chunkText: string } }[]).map(({ payload }) => payload.chunkText)
  expect(texts(after)[0]).toBe('Revoke a key when somebody leaves.')
  expect(texts((await as('alice')(`POST ${base}/search`, question)).body)).toContain(
    'Keys: how to revoke them.',
  )
})
