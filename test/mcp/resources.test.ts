import type { Client } from '@modelcontextprotocol/client'
import { expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { makeBase } from '../harness/resources.ts'
import { setUpMcp, unknownId } from './mcp-setup.ts'

/** Reads all resources, page by page. */
async function pagesOf(client: Client) {
  const pages: { uri: string; name: string; title?: string | undefined }[][] = []
  let cursor: string | undefined
  do {
    const page = await client.request({ method: 'resources/list', params: { cursor } })
    pages.push(page.resources)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return pages
}

/** Reads the text of a resource. */
async function read(client: Client, uri: string) {
  const { contents } = await client.readResource({ uri })
  const [content, ...others] = contents as { uri: string; text: string; _meta?: Record<string, unknown> }[]
  expect(others).toEqual([])
  return content!
}

test('lists the documents of all knowledge bases in pages', async () => {
  const wb = await setUpMcp()
  const { workspaceId } = wb
  const bases = [wb.base]
  for (let count = 0; count < 3; count++)
    bases.push(await makeBase({ call: wb.callAsOperator }, { workspaceId }))
  const expected: string[] = []
  for (const [at, count] of [30, 0, 40, 0].entries())
    for (let made = 0; made < count; made++) {
      const { params } = bases[at]!
      const body = { sourceFilename: `${at}-${made}.txt`, metadata: { title: `Title ${made}` } }
      const { documentId } = await wb.callAsOperator(documents.create, { params, body })
      expected.push(`workbase://${workspaceId}/kb/${params.knowledgeBaseId}/documents/${documentId}`)
    }
  const client = await wb.client(await wb.mint(['read']))
  const pages = await pagesOf(client)
  expect(pages.map(page => page.length)).toEqual([50, 20])
  expect(
    pages
      .flat()
      .map(({ uri }) => uri)
      .sort(),
  ).toEqual(expected.sort())
  expect(pages[0]![0]).toMatchObject({ name: expect.stringMatching(/\.txt$/), title: expect.any(String) })
  await expect(client.request({ method: 'resources/list', params: { cursor: 'x' } })).rejects.toMatchObject({
    code: -32_602,
    data: { code: 'invalid_cursor' },
  })
})

test('the URI template resolves to the text of a document', async () => {
  const wb = await setUpMcp()
  const text = 'The ornithopter flaps its wings.'
  const { documentId, knowledgeBaseId } = (await wb.base.ingest(text)).document
  const client = await wb.client(await wb.mint(['read']))
  const { resourceTemplates } = await client.listResourceTemplates()
  expect(resourceTemplates).toMatchObject([{ name: 'document', mimeType: 'text/plain' }])
  const uri = resourceTemplates[0]!.uriTemplate
    .replace('{knowledgeBaseId}', knowledgeBaseId)
    .replace('{documentId}', documentId)
    .replace('{?cursor}', '')
  expect(await read(client, uri)).toEqual({ uri, mimeType: 'text/plain', text })
  for (const wrong of [
    uri.replace(documentId, unknownId),
    uri.replace(knowledgeBaseId, unknownId),
    uri.replace(wb.workspaceId, unknownId),
    'file:///etc/passwd',
  ])
    await expect(client.readResource({ uri: wrong }), wrong).rejects.toMatchObject({ code: -32_602 })
})

test('a long document is returned in parts with links to the next part', async () => {
  const wb = await setUpMcp()
  const lines = Array.from({ length: 6_000 }, (_, at) => `Line ${at} is about ornithopter ${at * 7}.`)
  const { documentId, knowledgeBaseId } = (await wb.base.ingest(lines.join('\n'))).document
  const client = await wb.client(await wb.mint(['read']))
  const parts: string[] = []
  let uri: string | undefined = `workbase://${wb.workspaceId}/kb/${knowledgeBaseId}/documents/${documentId}`
  while (uri !== undefined) {
    const content = await read(client, uri)
    uri = content._meta?.['workbase/next'] as string | undefined
    const note = `\n\n[The document continues. Read ${uri} for the next part.]`
    if (uri !== undefined) expect(content.text.endsWith(note)).toBe(true)
    parts.push(uri === undefined ? content.text : content.text.slice(0, -note.length))
  }
  expect(parts.length).toBeGreaterThan(2)
  expect(Math.max(...parts.map(part => part.length))).toBeLessThanOrEqual(100_000)
  expect(parts.join('').split(/\s*\n/)).toEqual(lines)
})

test('listing and reading resources is audited', async () => {
  const wb = await setUpMcp()
  const { documentId, knowledgeBaseId } = (await wb.base.ingest('The ornithopter flaps its wings.')).document
  const client = await wb.client(await wb.mint(['read']))
  const place = `workbase://${wb.workspaceId}/kb/${knowledgeBaseId}/documents`
  await pagesOf(client)
  await read(client, `${place}/${documentId}`)
  await expect(read(client, `${place}/${unknownId}`)).rejects.toThrow('not found')
  expect((await wb.toolAuditRecords()).map(({ outcome, details }) => [details?.toolName, outcome])).toEqual([
    ['resources/list', 'success'],
    ['resources/read', 'success'],
    ['resources/read', 'failure'],
  ])
})
