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

test('the progress of sentence vectors is shown only to callers who may see all documents', async () => {
  const { wb, base, operator, as } = await openRestrictedWorkspace({ sentenceModel: fakeSentenceModel() })
  await operator(`POST ${base}/ingest`, { text: 'Hidden.', visibleTo: ['alice'] })
  const list = base.slice(0, base.lastIndexOf('/'))
  const progressFor = async (send: typeof operator) => {
    const { body } = await send(`GET ${list}`)
    return (body as unknown as { items: { sentences?: object }[] }).items.map(({ sentences }) => sentences)
  }
  expect(await progressFor(as('bob'))).toEqual([undefined])
  expect(await progressFor(operator)).toEqual([{ state: 'embedding', embeddedChunks: 0, chunks: 1 }])
  await wb.settle()
  expect(await progressFor(as('bob'))).toEqual([undefined])
  expect(await progressFor(operator)).toEqual([{ state: 'ready', embeddedChunks: 1, chunks: 1 }])
})
