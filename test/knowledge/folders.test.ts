import { describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { folders } from '../../src/contract/folders.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import { open, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import { createHostedBase, embeddedTexts, enqueue, jobOf, textOf, waitForEnd } from '../jobs/ingest-jobs.ts'

type Call = Pick<TestRuntime, 'call'>

async function setDescription({ call }: Call, { params }: Base, path: string, description: string | null) {
  return (await call(folders.update, { params, body: { path, description } })).items
}

async function list({ call }: Call, { params }: Base) {
  return (await call(folders.list, { params })).items
}

async function reindex(wb: TestRuntime, { params }: Base) {
  const { job } = await wb.call(kb.reindex, { params, body: {} })
  expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded', errorMessage: null })
  return (await wb.call(kb.reindexing, { params })).documents
}

describe('the list of descriptions', () => {
  test('is sorted by path, and a description replaces that of the same folder', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    expect(await list(wb, base)).toEqual([])
    await setDescription(wb, base, './guides/setup/', '  how to\n install ')
    await setDescription(wb, base, '.', 'all of it')
    expect(await setDescription(wb, base, 'guides/setup', 'how to begin')).toEqual([
      { path: '', description: 'all of it' },
      { path: 'guides/setup', description: 'how to begin' },
    ])
    expect(await setDescription(wb, base, '', null)).toEqual([
      { path: 'guides/setup', description: 'how to begin' },
    ])
    expect(await list(wb, base)).toHaveLength(1)
  })

  test('stays when the knowledge base is renamed', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    await setDescription(wb, base, 'a', 'letters')
    await wb.call(kb.rename, { params: base.params, body: { name: 'renamed' } })
    expect(await list(wb, base)).toEqual([{ path: 'a', description: 'letters' }])
  })
})

describe('embedding', () => {
  test('a provider receives the description of the deepest folder before the headings', async () => {
    const { wb, base, provider } = await createHostedBase()
    await setDescription(wb, base, '', 'company handbook')
    await setDescription(wb, base, 'guides', 'for administrators')
    const markdown = '# Keys\n\nRotate them.'
    await base.ingest(markdown, { sourceFilename: 'guides/keys.md' })
    await base.ingest('Other text.', { sourceFilename: 'guides-old.md' })
    await enqueue(wb, base, 'Text of a job.', { sourceFilename: 'guides/jobs.txt' })
    await waitUntil(async () => provider.embedded.length === 3)
    expect(embeddedTexts(provider)).toEqual([
      `for administrators\nKeys\n${markdown}`,
      'company handbook\nOther text.',
      'for administrators\nText of a job.',
    ])
    const [hit] = await base.search('Rotate', { includeFolder: true })
    expect(hit).toMatchObject({
      folder: { path: 'guides', description: 'for administrators' },
      payload: { chunkText: markdown },
    })
    expect((await base.search('Rotate'))[0]).not.toHaveProperty('folder')
  })

  test('a reindex embeds only the documents of the folder again, and its removal restores them', async () => {
    const { wb, base, provider } = await createHostedBase()
    await base.ingest('Rotate them.', { sourceFilename: 'guides/keys.txt' })
    await base.ingest('Other text.', { sourceFilename: 'other.txt' })
    await setDescription(wb, base, 'guides', 'for administrators')
    expect(await reindex(wb, base)).toEqual({ rechunked: 1, unchanged: 1, kept: 0 })
    await setDescription(wb, base, 'guides', null)
    expect(await reindex(wb, base)).toEqual({ rechunked: 1, unchanged: 1, kept: 0 })
    expect(embeddedTexts(provider).slice(2)).toEqual(['for administrators\nRotate them.', 'Rotate them.'])
  })

  test('a job that is already reindexing uses a new description for all documents', async () => {
    const { wb, base, provider } = await createHostedBase()
    for (let n = 0; n < 4; n++) await base.ingest(textOf(1, `wing${n}`), { sourceFilename: `a/${n}.txt` })
    await setDescription(wb, base, 'a', 'first')
    let isChanged = false
    const change = async () => {
      if (isChanged) return
      isChanged = true
      await setDescription(wb, base, 'a', 'second')
    }
    provider.script({}, { before: change })
    const { job } = await wb.call(kb.reindex, { params: base.params, body: {} })
    expect(await waitForEnd(wb, job)).toMatchObject({ status: 'succeeded' })
    expect(isChanged).toBe(true)
    const last = embeddedTexts(provider).filter(text => text.startsWith('second\n'))
    expect(new Set(last).size).toBe(4)
    expect(await jobOf(wb, job)).toMatchObject({ result: { chunks: 4 } })
  })

  test('a job that another process continues uses a description that was set in the meantime', async () => {
    const { wb, base, provider } = await createHostedBase()
    for (let n = 0; n < 3; n++) await base.ingest(textOf(1, `wing${n}`), { sourceFilename: `a/${n}.txt` })
    await setDescription(wb, base, 'a', 'first')
    const before = provider.received.length
    provider.script({}, { hang: 'before headers' })
    const { job } = await wb.call(kb.reindex, { params: base.params, body: {} })
    await waitUntil(() => provider.received.length === before + 2)
    await wb.close()
    provider.recover()
    await setDescription(await open({ dataDir: wb.dataDir }), base, 'a', 'second')
    const next = await open({ dataDir: wb.dataDir, server: true })
    expect(await waitForEnd(next, job)).toMatchObject({ status: 'succeeded' })
    const texts = provider.embedded.slice(3)
    expect(texts.map(text => text.split(' ')[0])).toEqual([
      'first\nwing0',
      'second\nwing0',
      'second\nwing1',
      'second\nwing2',
    ])
  })

  test('the sentence model receives the description', async () => {
    const model = fakeSentenceModel()
    const wb = await open({ sentenceModel: model })
    const base = await makeBase(wb)
    await setDescription(wb, base, 'guides', 'for administrators')
    await base.ingest('Rotate keys.', { sourceFilename: 'guides/keys.txt' })
    await wb.settle()
    expect(model.passages).toEqual(['for administrators\nRotate keys.'])
  })

  test('a document that is moved gets the description of its new folder, with the built-in embedder', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    await setDescription(wb, base, 'guides', 'for administrators')
    await setDescription(wb, base, 'drafts', 'not approved yet')
    const { document } = await base.ingest('Rotate keys.', { sourceFilename: 'guides/keys.txt' })
    const params = { ...base.params, documentId: document.documentId }
    const contextNow = async () => {
      const { lines } = await wb.call(kb.export, { params: base.params, query: {} })
      return lines.map(line => JSON.parse(line).chunk?.context).find(context => context !== undefined)
    }
    await wb.call(documents.update, { params, body: { metadata: { lang: 'en' } } })
    expect(await contextNow()).toBe('for administrators')
    await wb.call(documents.update, { params, body: { sourceFilename: 'drafts/keys.txt' } })
    expect(await contextNow()).toBe('not approved yet')
  })

  test('search by vectors finds passages by the words of the description, and word search does not', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const topics = ['keys', 'roles', 'locks', 'doors', 'gates', 'walls', 'roofs', 'floors', 'lamps', 'desks']
    for (const [at, word] of topics.entries()) {
      const folder = at < 5 ? 'aviation' : 'offices'
      await base.ingest(`A text about ${word} and how they are used.`, {
        sourceFilename: `${folder}/${word}.txt`,
      })
    }
    const version = async () => (await base.show()).embedder?.version
    await waitUntil(async () => (await version()) === 'lsa-1')
    await setDescription(wb, base, 'aviation', 'ornithopter manuals')
    await reindex(wb, base)
    await waitUntil(async () => (await version()) === 'lsa-2')
    const hits = await base.search('ornithopter', { hybrid: false, topK: 5 })
    const names = hits.map(({ payload }) => String(payload!.chunkText).split(' ')[3])
    expect(new Set(names)).toEqual(new Set(topics.slice(0, 5)))
    expect(await base.search('ornithopter', { lexicalWeight: 1 })).toEqual([])
  })
})
