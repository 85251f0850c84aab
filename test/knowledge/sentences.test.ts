import { expect, test } from 'vitest'
import { kb } from '../../src/contract/knowledge.ts'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { type Base, makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from '../harness/runtime.ts'

const synonyms = ['revoke', 'throw', 'discard'] as const
const tokens = ['key', 'token', 'credential'] as const
const question = 'throw away a token'
const answer = 'Revoke a key when somebody leaves the team.'
const others = ['Apples ripen in autumn.', 'The pump needs oil every month.', 'Throw the ball to the dog.']

function openWithModel(options: TestRuntimeOptions = {}) {
  const model = fakeSentenceModel(synonyms, tokens)
  return open({ sentenceModel: model, ...options }).then(wb => ({ wb, model }))
}

async function ingestAll(base: Base): Promise<void> {
  for (const text of [...others, answer]) await base.ingest(text)
}

const textsOf = (hits: readonly { payload?: Record<string, unknown> }[]) =>
  hits.map(({ payload }) => payload!.chunkText)

const update = (wb: TestRuntime, { params }: Base, semantic: boolean) =>
  wb.call(kb.update, { params, body: { semantic } })

test('a question in other words finds the passage', async () => {
  const { wb } = await openWithModel()
  const base = await makeBase(wb)
  await ingestAll(base)
  expect(textsOf(await base.search(question))[0]).toBe('Throw the ball to the dog.')
  await wb.settle()
  expect(textsOf(await base.search(question))[0]).toBe(answer)
})

test('words decide if a passage contains the words of the question', async () => {
  const { wb } = await openWithModel()
  const base = await makeBase(wb)
  await ingestAll(base)
  await base.ingest('Discard a credential.')
  await wb.settle()
  expect(textsOf(await base.search('revoke key'))[0]).toBe(answer)
})

test('a search does not wait for the model if a passage contains all words of the question', async () => {
  const model = fakeSentenceModel(synonyms, tokens)
  const embed: typeof model.embed = (texts, options) =>
    options.priority === 'query' ? new Promise(() => {}) : model.embed(texts, options)
  const wb = await open({ sentenceModel: { ...model, embed } })
  const base = await makeBase(wb)
  await ingestAll(base)
  await wb.settle()
  expect(textsOf(await base.search('revoke key'))[0]).toBe(answer)
})

test('a search by vectors only, or by words only, does not use the model', async () => {
  const { wb } = await openWithModel()
  const base = await makeBase(wb)
  await ingestAll(base)
  const modes = [{ hybrid: false }, { lexicalWeight: 1 }, { prefix: true }]
  const before = await Promise.all(modes.map(mode => base.search(question, mode)))
  await wb.settle()
  expect(await Promise.all(modes.map(mode => base.search(question, mode)))).toEqual(before)
})

test('vectors are computed once, and an interrupted runtime continues', async () => {
  const { wb, model } = await openWithModel()
  const base = await makeBase(wb)
  await ingestAll(base)
  model.failure = new Error('out of memory')
  await wb.settle()
  expect(wb.loggedProblems).toMatchObject([{ message: 'sentence vectors could not be computed' }])
  await wb.close()

  const next = await openWithModel({ dataDir: wb.dataDir })
  expect(await next.wb.runtime.pending()).toBe(1)
  await next.wb.settle()
  expect(next.model.passages).toHaveLength(4)
  await next.wb.settle()
  expect(next.model.passages).toHaveLength(4)
  expect(await next.wb.runtime.pending()).toBe(0)
})

test('nothing is computed again when the fields of a document change', async () => {
  const { wb, model } = await openWithModel()
  const base = await makeBase(wb)
  const { document } = await base.ingest(answer)
  await wb.settle()
  await wb.send(`PATCH ${base.path}/documents/${document.documentId}`, { metadata: { team: 'red' } })
  await wb.settle()
  expect(model.passages).toEqual([answer])
  expect(textsOf(await base.search(question, { filter: { team: 'red' } }))).toEqual([answer])
})

test('only the changed passages of a document that is replaced are computed again', async () => {
  const { wb, model } = await openWithModel()
  const base = await makeBase(wb)
  const paragraphs = others.map(text => text.padEnd(900, ' etc.'))
  const ingest = (texts: readonly string[]) =>
    base.ingest(texts.join('\n\n'), { sourceFilename: 'notes.txt', overwriteOnNameConflict: true })
  await ingest(paragraphs)
  await wb.settle()
  const computed = [...model.passages]
  expect(computed.length).toBeGreaterThan(2)
  await ingest([...paragraphs.slice(0, -1), answer])
  await wb.settle()
  expect(model.passages.slice(computed.length)).toEqual([expect.stringContaining(answer)])
  expect(await wb.call(kb.show, { params: base.params })).toMatchObject({ sentences: { state: 'ready' } })
  expect(textsOf(await base.search(question))[0]).toContain(answer)
})

test('a server computes vectors by itself, and shows the progress', async () => {
  const { wb } = await openWithModel({ server: true })
  const base = await makeBase(wb)
  await ingestAll(base)
  await expect
    .poll(() => wb.call(kb.show, { params: base.params }))
    .toMatchObject({ sentences: { state: 'ready', embeddedChunks: 4, chunks: 4 } })
  expect(textsOf(await base.search(question))[0]).toBe(answer)
})

test('a search does not fail if the model fails', async () => {
  const { wb, model } = await openWithModel()
  const base = await makeBase(wb)
  await ingestAll(base)
  await wb.settle()
  model.failure = new Error('damaged')
  expect(textsOf(await base.search(question))[0]).toBe('Throw the ball to the dog.')
  expect(wb.loggedProblems).toMatchObject([{ message: 'the sentence model failed; a search did not use it' }])
})

test('rows that the caller may not see do not decide whether the model is used', async () => {
  const { wb, model } = await openWithModel()
  const { workspaceId } = await makeWorkspace(wb, { rlacEnabled: true })
  const base = await makeBase(wb, { workspaceId })
  for (const text of [...others, answer]) await base.ingest(text, { visibleTo: ['*'] })
  await wb.settle()
  model.failure = new Error('busy')
  for (let count = 0; count < 10; count++) await base.ingest(`Hidden ${count}.`, { visibleTo: ['bob'] })
  await wb.settle()
  model.failure = undefined
  const asAlice = { 'x-view-as-principal': 'alice' }
  const { body } = await wb.send(`POST ${base.path}/search`, { text: question }, asAlice)
  expect(textsOf(body as unknown as { payload: Record<string, unknown> }[])[0]).toBe(answer)
  expect(wb.loggedProblems.length).toBeGreaterThan(0)
})

test('a large ingest in one workspace does not delay the vectors of another', async () => {
  const { wb, model } = await openWithModel({ server: true })
  const { embed } = model
  let release!: () => void
  const isReleased = new Promise<void>(resolve => {
    release = resolve
  })
  model.embed = (...call) => isReleased.then(() => embed(...call))
  const [large, small] = [await makeBase(wb), await makeBase(wb)]
  const records = Array.from({ length: 200 }, (_, index) => ({ id: `r${index}`, text: `Large ${index}.` }))
  await wb.send(`POST ${large.path}/records`, { records })
  await small.ingest('Small.')
  release()
  await expect.poll(() => model.passages).toHaveLength(201)
  expect(model.passages.findIndex(text => text.includes('Small'))).toBeLessThan(100)
})

test('a knowledge base without search by meaning has no vectors, until it is turned on', async () => {
  const { wb, model } = await openWithModel()
  const base = await makeBase(wb, { semantic: false })
  await ingestAll(base)
  await wb.settle()
  expect(model.passages).toEqual([])
  expect(await base.show()).not.toHaveProperty('sentences')
  await update(wb, base, true)
  await wb.settle()
  expect(textsOf(await base.search(question))[0]).toBe(answer)
  await update(wb, base, false)
  expect(textsOf(await base.search(question))[0]).toBe('Throw the ball to the dog.')
  await update(wb, base, true)
  await wb.settle()
  expect(model.passages).toHaveLength(8)
})

test('the runtime setting turns the model off', async () => {
  const wb = await open({ sentenceModel: undefined, config: { runtime: { semanticSearch: false } } })
  const base = await makeBase(wb)
  await ingestAll(base)
  expect(await wb.runtime.pending()).toBe(0)
  expect(await base.show()).not.toHaveProperty('sentences')
})

test('a passage without text is similar to nothing', async () => {
  const { wb, model } = await openWithModel()
  const base = await makeBase(wb)
  await base.ingest(' . ')
  await ingestAll(base)
  await wb.settle()
  expect(model.passages.every(text => text.trim() !== '')).toBe(true)
  expect(textsOf(await base.search(question))[0]).toBe(answer)
})
