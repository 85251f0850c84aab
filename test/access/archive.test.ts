import { expect, test } from 'vitest'
import type { Send } from './principal-requests.ts'
import { ingest, openRestrictedWorkspace } from './restricted-workspace.ts'

/** Returns the lines of an export; fails if there is more than one page. */
async function exportLines(send: Send, base: string, query = ''): Promise<string[]> {
  const { body, status } = await send(`GET ${base}/export${query}`)
  expect({ status, nextCursor: body.nextCursor }).toEqual({ status: 200, nextCursor: null })
  return body.lines as string[]
}

/** Imports a file, and returns the path of its knowledge base. */
async function importLines(send: Send, workspace: string, lines: readonly string[], name: string) {
  const [header, ...rest] = lines
  const { body } = await send(`POST ${workspace}/knowledge-bases/import`, { header, name })
  const { knowledgeBaseId } = body.knowledgeBase as { knowledgeBaseId: string }
  const base = `${workspace}/knowledge-bases/${knowledgeBaseId}`
  expect((await send(`POST ${base}/ingest/import`, { from: 1, lines: rest })).body).toEqual({
    nextLine: lines.length,
    isComplete: true,
  })
  return base
}

/** Returns the texts that a search finds. */
async function textsFor(send: Send, base: string): Promise<string[]> {
  const { body } = await send(`POST ${base}/search`, { text: 'turbine', lexicalWeight: 1 })
  return (body as unknown as { payload: { chunkText: string } }[]).map(hit => hit.payload.chunkText).sort()
}

/** A workspace with a text for each of alice, bob and everyone. */
async function openFilled() {
  const opened = await openRestrictedWorkspace()
  const { as, base, operator } = opened
  await ingest(as('alice'), base, { text: 'A turbine of alice.' })
  await ingest(as('bob'), base, { text: 'A turbine of bob.' })
  await as('bob')(`POST ${base}/records`, { records: [{ id: 'bobs', text: 'A turbine record of bob.' }] })
  await ingest(operator, base, { text: 'A turbine of all.', visibleTo: ['*'] })
  return { ...opened, alice: as('alice'), bob: as('bob') }
}

test('an export contains only what the caller may see, unless a caller with manage:access requests everything', async () => {
  const { alice, base, operator } = await openFilled()
  const own = (await exportLines(alice, base)).join('\n')
  expect(own).toContain('A turbine of alice.')
  expect(own).toContain('A turbine of all.')
  expect(own).not.toContain('bob')
  expect((await alice(`GET ${base}/export?all=true`)).status).toBe(403)
  expect((await exportLines(operator, base, '?all=true')).join('\n')).toContain('A turbine record of bob.')
})

test('an export contains the descriptions of folders with documents that the caller may see', async () => {
  const { alice, base, operator } = await openFilled()
  for (const name of ['alice', 'bob']) {
    const file = {
      text: `A turbine in the folder of ${name}.`,
      sourceFilename: `${name}/a.txt`,
      visibleTo: [name],
    }
    await ingest(operator, base, file)
    await operator(`PATCH ${base}/folders`, { path: name, description: `files of ${name}` })
  }
  const foldersIn = ([header]: string[]) => (JSON.parse(header!) as { folders: unknown }).folders
  const own = { path: 'alice', description: 'files of alice' }
  expect(foldersIn(await exportLines(alice, base))).toEqual([own])
  expect(foldersIn(await exportLines(operator, base, '?all=true'))).toHaveLength(2)
})

test('an export does not contain an earlier description of a folder', async () => {
  const { alice, base, operator } = await openFilled()
  await operator(`PATCH ${base}/folders`, { path: 'board', description: 'layoffs' })
  const file = { text: '# A\n\nA turbine.', sourceFilename: 'board/a.md', visibleTo: ['alice'] }
  await ingest(operator, base, file)
  await operator(`PATCH ${base}/folders`, { path: 'board', description: 'news' })
  expect((await exportLines(operator, base, '?all=true')).join('\n')).toContain('layoffs')
  const seen = (await exportLines(alice, base)).join('\n')
  expect(seen).toContain('news')
  expect(seen).not.toContain('layoffs')
})

test('an import keeps visibility and owners for a caller with manage:access only', async () => {
  const { alice, bob, base, workspace, operator } = await openFilled()
  const lines = await exportLines(operator, base, '?all=true')
  const refused = await alice(`POST ${workspace}/knowledge-bases/import`, {
    header: lines[0],
    name: 'stolen',
  })
  expect(refused.status).toBe(403)
  const copy = await importLines(operator, workspace, lines, 'copy')
  for (const send of [alice, bob]) expect(await textsFor(send, copy)).toEqual(await textsFor(send, base))
  expect(await textsFor(bob, copy)).toHaveLength(3)
  const renamed = await exportLines(operator, copy, '?all=true')
  expect(renamed.slice(1, -1)).toEqual(lines.slice(1, -1))
})

test('a restricted file cannot be imported into a workspace without row-level access', async () => {
  const { base, operator } = await openFilled()
  const [header] = await exportLines(operator, base, '?all=true')
  const { body } = await operator('POST /api/v1/workspaces', { name: 'open', kind: 'local' })
  const refused = await operator(`POST /api/v1/workspaces/${body.workspaceId}/knowledge-bases/import`, {
    header,
  })
  expect(refused).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
})

test('only its importer sees an unrestricted file that was imported without manage:access', async () => {
  const { alice, bob, workspace, operator } = await openFilled()
  const { body } = await operator('POST /api/v1/workspaces', { name: 'open', kind: 'local' })
  const open = `/api/v1/workspaces/${body.workspaceId}`
  const made = await operator(`POST ${open}/knowledge-bases`, { name: 'free' })
  const base = `${open}/knowledge-bases/${made.body.knowledgeBaseId}`
  await ingest(operator, base, { text: 'A turbine for nobody else.', visibleTo: ['*'] })
  const lines = await exportLines(operator, base)
  const copy = await importLines(alice, workspace, lines, 'copy')
  expect(await textsFor(alice, copy)).toEqual(['A turbine for nobody else.'])
  expect(await textsFor(bob, copy)).toEqual([])
})

test('another principal cannot continue an import, or learn how far it is', async () => {
  const { alice, bob, workspace, operator } = await openFilled()
  const { body } = await operator('POST /api/v1/workspaces', { name: 'open', kind: 'local' })
  const open = `/api/v1/workspaces/${body.workspaceId}`
  const made = await operator(`POST ${open}/knowledge-bases`, { name: 'free' })
  const [header, ...lines] = await exportLines(
    operator,
    `${open}/knowledge-bases/${made.body.knowledgeBaseId}`,
  )
  const begun = await alice(`POST ${workspace}/knowledge-bases/import`, { header })
  const { knowledgeBaseId } = begun.body.knowledgeBase as { knowledgeBaseId: string }
  const path = `${workspace}/knowledge-bases/${knowledgeBaseId}/ingest/import`
  for (const from of [1, 9])
    expect(await bob(`POST ${path}`, { from, lines })).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining('another caller') } },
    })
  expect((await bob(`POST ${workspace}/knowledge-bases/import`, { header })).status).toBe(409)
})
