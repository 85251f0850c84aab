import { expect, onTestFinished, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { trash } from '../../src/contract/trash.ts'
import { openRestrictedWorkspace } from '../access/restricted-workspace.ts'
import { type EmbeddingServer, startEmbeddingServer } from '../fakes/embedding-server.ts'
import { makeBase } from '../harness/resources.ts'
import { TestClock } from '../harness/runtime.ts'
import {
  chunkPerParagraph,
  createHostedBase,
  embeddedTexts,
  enqueue,
  waitForEnd,
} from '../jobs/ingest-jobs.ts'

const paragraphs = (...words: string[]) => words.map(word => `${word} `.padEnd(90, 'x')).join('\n\n')
const named = { sourceFilename: 'a.md', overwriteOnNameConflict: true, ...chunkPerParagraph }

/** Returns the first words of the texts that the provider has received since the last call. */
function received(provider: EmbeddingServer): string[] {
  const words = embeddedTexts(provider).map(text => text.split(' ')[0]!)
  provider.received.length = 0
  return words.sort()
}

test.each(['request', 'job'] as const)(
  'only new chunks of a changed document are embedded (%s)',
  async way => {
    const clock = new TestClock()
    const { wb, base, provider } = await createHostedBase({ clock })
    const ingest = async (text: string) => {
      if (way === 'request') await base.ingest(text, named)
      else await waitForEnd(wb, (await enqueue(wb, base, text, named)).job)
    }
    await ingest(paragraphs('one', 'two', 'three'))
    expect(received(provider)).toEqual(['one', 'three', 'two'])
    clock.advance(3_600_000)
    await ingest(paragraphs('one', 'new', 'three'))
    expect(received(provider)).toEqual(['new'])
    const hits = await base.search('one', { includeEmbeddings: true } as object)
    expect(hits.map(({ id }) => id.split(':')[1]).sort()).toEqual(['0', '1', '2'])
  },
)

test('chunks are embedded with their headings, and again if a heading changes', async () => {
  const clock = new TestClock()
  const { wb, base, provider } = await createHostedBase({ clock })
  const ingest = async (heading: string, last: string) => {
    clock.advance(3_600_000)
    const text = `## ${heading}\n\n${paragraphs('one', 'two')}\n\n## End\n\n${paragraphs('three', last)}`
    const { document } = await base.ingest(text, named)
    const texts = embeddedTexts(provider).map(passage =>
      passage.replace(/#| x+/g, '').match(/\w+/g)!.join(' '),
    )
    provider.received.length = 0
    return { texts: texts.sort(), documentId: document.documentId }
  }
  expect((await ingest('Keys', 'four')).texts).toEqual([
    'End End three',
    'End four',
    'Keys Keys one',
    'Keys two',
  ])
  expect((await ingest('Tokens', 'four')).texts).toEqual(['Tokens Tokens', 'Tokens one', 'Tokens two'])
  const { documentId } = await ingest('Tokens', 'five')
  await wb.call(documents.delete, { params: { ...base.params, documentId } })
  const [entry] = (await wb.call(trash.list, { params: base.params })).items
  await wb.call(trash.restore, { params: { ...base.params, entryId: entry!.entryId } })
  expect((await ingest('Tokens', 'six')).texts).toEqual(['End six'])
})

test('vectors of an ingest that failed are not requested again', async () => {
  const { base, provider } = await createHostedBase()
  provider.script({}, {}, { status: 400 })
  const text = paragraphs('one', 'two', 'three', 'four', 'five')
  await expect(base.ingest(text, named)).rejects.toThrow('status 400')
  expect(received(provider)).toEqual(['five', 'four', 'one', 'three', 'two'])
  await base.ingest(text, named)
  expect(received(provider)).toEqual(['five'])
})

test('vectors are forgotten after a while, and are not used in another knowledge base', async () => {
  const clock = new TestClock()
  const { wb, base, provider } = await createHostedBase({ clock })
  await base.ingest(paragraphs('one', 'end'), chunkPerParagraph)
  received(provider)
  await base.ingest(paragraphs('one', 'two'), chunkPerParagraph)
  expect(received(provider)).toEqual(['two'])
  const { embeddingServiceId, ...rest } = await base.show()
  const other = await makeBase(wb, { workspaceId: rest.workspaceId, embeddingServiceId })
  await other.ingest(paragraphs('one', 'end'), chunkPerParagraph)
  expect(received(provider)).toEqual(['end', 'one'])
  clock.advance(15 * 60_000)
  await base.ingest(paragraphs('one', 'three'), chunkPerParagraph)
  expect(received(provider)).toEqual(['one', 'three'])
})

test('with row-level access, an ingest does not reveal the texts of hidden documents', async () => {
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  const { workspace, operator, as } = await openRestrictedWorkspace()
  const service = {
    name: 'hosted',
    provider: 'ollama',
    modelName: 'm',
    embeddingDimension: 3,
    endpointBaseUrl: provider.url,
  }
  const { embeddingServiceId } = (await operator(`POST ${workspace}/embedding-services`, service)).body
  const made = await operator(`POST ${workspace}/knowledge-bases`, { name: 'hosted', embeddingServiceId })
  const path = `${workspace}/knowledge-bases/${made.body.knowledgeBaseId}/ingest`
  const ingest = async (principal: string, text: string) => {
    const answer = await as(principal)(`POST ${path}`, { text, ...named })
    expect(answer.status).toBe(201)
    return received(provider)
  }
  await ingest('ann', paragraphs('secret', 'plan'))
  expect(await ingest('bob', paragraphs('secret', 'guess'))).toEqual(['guess', 'secret'])
  expect(await ingest('ann', paragraphs('secret', 'guess'))).toEqual(['guess'])
  expect(await ingest('bob', paragraphs('plan', 'guess')), 'the replaced document is visible').toEqual([
    'plan',
  ])
  await operator(`POST ${path}`, { text: paragraphs('board'), ...named })
  received(provider)
  expect(await ingest('bob', paragraphs('board', 'guess'))).toEqual(['board'])
})
