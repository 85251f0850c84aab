import { expect, test } from 'vitest'
import { type ChunkPreview, chunkPreview } from '../../src/contract/chunk-preview.ts'
import { documents } from '../../src/contract/documents.ts'
import { limits } from '../../src/contract/limits.ts'
import { pdf } from '../formats/files.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

const structure = {
  engine: 'workbase',
  strategy: 'structure',
  maxChunkSize: 60,
  minChunkSize: 10,
  overlapSize: 0,
}
const lines = { engine: 'langchain_ts', strategy: 'line', chunkUnit: 'rows', maxChunkSize: 1 }
const markdown =
  '# Team\n\nWho is who.\n\n| Name | Role |\n| --- | --- |\n| Ann | admin |\n| Bob | user |\n| Cyd | user |\n'

async function stage() {
  const wb = await open({ server: true })
  const base = await makeBase(wb)
  const { workspaceId } = base.params
  const preview = (content: string | Uint8Array, name: string, chunkers: unknown): Promise<ChunkPreview> => {
    const body = new FormData()
    body.set('file', new File([content as never], name))
    body.set('chunkers', typeof chunkers === 'string' ? chunkers : JSON.stringify(chunkers))
    return wb.call(chunkPreview.create, { params: { workspaceId }, body })
  }
  return { wb, base, preview }
}

test('returns the chunks of a file by each chunker, and stores nothing', async () => {
  const { wb, base, preview } = await stage()
  const { text, previews } = await preview(markdown, 'team.md', [structure, lines])
  expect(text).toBe(markdown)
  expect(previews.map(({ chunkerId, chunkTotal }) => [chunkerId, chunkTotal])).toEqual([
    ['structure:1', 3],
    ['line:1', 9],
  ])
  const chunks = previews[0]!.chunks.map(({ start, end, ...chunk }) => ({
    ...chunk,
    text: text.slice(start, end),
  }))
  const rest = { page: null, slide: null, sheet: null, section: 'Team', tokens: expect.any(Number) }
  expect(chunks).toEqual([
    { ...rest, tableHeads: null, text: '# Team\n\nWho is who.' },
    { ...rest, tableHeads: null, text: '| Name | Role |\n| --- | --- |\n| Ann | admin |' },
    { ...rest, tableHeads: 'Name | Role', text: '| Bob | user |\n| Cyd | user |' },
  ])
  expect((await wb.call(documents.list, { params: base.params, query: {} })).items).toEqual([])
})

test.each([
  ['"Name",Role\nAnn,admin\nBob,user\n', 'team.csv'],
  ['Name;Role\r\nAnn;admin\r\nBob;user\r\n', 'team.csv'],
  ['Name\tRole\nAnn, Jr.\tadmin\nBob\tuser\n', 'team.tsv'],
])('the rows of a CSV or TSV file have its column headers: %j', async (text, name) => {
  const { preview } = await stage()
  const { previews } = await preview(text, name, [lines])
  expect(previews[0]!.chunks.map(({ tableHeads }) => tableHeads)).toEqual([
    null,
    'Name | Role',
    'Name | Role',
  ])
})

test('reads other formats, with their pages and their title', async () => {
  const { preview } = await stage()
  const file = await pdf([[[11, 'First page.']], [[11, 'Second page.']]], { info: { Title: 'Handbook' } })
  const { title, previews } = await preview(file, 'a.pdf', [{ ...structure, maxChunkSize: 12 }])
  expect(title).toBe('Handbook')
  expect(previews[0]!.chunks.map(({ page }) => page)).toEqual([1, 2])
})

test.each<[string, unknown, string]>([
  ['no chunkers', [], 'invalid_chunker'],
  ['text that is not JSON', '[', 'invalid_chunker'],
  ['too many chunkers', Array(limits.previewedChunkers + 1).fill(structure), 'invalid_chunker'],
  ['an unknown chunker', [{ engine: 'other' }], 'invalid_chunker'],
])('rejects %s', async (_, chunkers, code) => {
  const { preview } = await stage()
  await expect(preview('words', 'a.txt', chunkers)).rejects.toMatchObject({ code })
})

test('rejects a text that is too long', async () => {
  const { preview } = await stage()
  const text = 'word '.repeat(limits.attachmentTextChars / 5 + 1)
  await expect(preview(text, 'a.txt', [structure])).rejects.toMatchObject({ code: 'payload_too_large' })
})
