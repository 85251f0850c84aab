import { expect, test, vi } from 'vitest'
import { kb } from '../../src/contract/knowledge.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

const lexical = { lexicalWeight: 1 }

test('a knowledge base is searched in its language, and in another one after a change', async () => {
  const wb = await open()
  const base = await makeBase(wb, { language: 'de' })
  await base.ingest('Die Häuser der Stadt')
  expect(await base.search('Haus', lexical)).toHaveLength(1)
  await wb.call(kb.update, { params: base.params, body: { language: null } })
  await vi.waitFor(async () => expect(await base.search('Haus', lexical)).toEqual([]), { timeout: 20_000 })
  expect(await base.search('Häuser', lexical)).toHaveLength(1)
  const changed = await wb.call(kb.update, { params: base.params, body: { language: 'de' } })
  expect(changed.language).toBe('de')
  await vi.waitFor(async () => expect(await base.search('Haus', lexical)).toHaveLength(1), {
    timeout: 20_000,
  })
})

test.each([{}, lexical, { rerank: true }])(
  'with %j, all hits contain the phrase of the question',
  async options => {
    const base = await makeBase(await open())
    for (let n = 0; n < 12; n++) await base.ingest(`Part ${n}: the transfer of heat to a wing`)
    await base.ingest('Heat transfer to a wing in slow flow')
    const hits = await base.search('"heat transfer" to a wing', options)
    expect(hits.map(({ payload }) => payload!.chunkText)).toEqual(['Heat transfer to a wing in slow flow'])
    expect(await base.search('heat transfer to a wing', options)).toHaveLength(13)
  },
)

test('a search while a user types finds the words that the last one is the beginning of', async () => {
  const base = await makeBase(await open())
  await base.ingest('Panel flutter at supersonic speeds')
  expect(await base.search('panel-free flut', { ...lexical, prefix: true })).toHaveLength(1)
  expect(await base.search('flut', { ...lexical, prefix: true })).toHaveLength(1)
  expect(await base.search('flut', lexical)).toEqual([])
})
