import { describe, expect, test } from 'vitest'
import { idOf, ingest, makeKnowledgeBase, makePlace } from './fixtures.ts'
import { past, type Row, useServer } from './harness.ts'
import { knowledgeFilter, notUuid, unknownId } from './shapes.ts'

const wire = useServer()
const english = { lang: 'en' }

async function makeFilter(kb: string, body: object = {}): Promise<string> {
  const id = await wire.make(`${kb}/filters`, { name: 'ours', filter: english, ...body }, 'knowledgeFilterId')
  return `${kb}/filters/${id}`
}

describe('saved filters', () => {
  test('S1-08 S2.7-03: can be created, listed, shown, changed and deleted, with the documented fields', async () => {
    const { kb, workspaceId, knowledgeBaseId } = await makePlace(wire)
    const whose = { workspaceId, knowledgeBaseId }
    const sent = { name: 'English', description: 'texts in English', filter: english }
    const first = await wire.exchange(`POST ${kb}/filters`, sent, 201, knowledgeFilter({ ...whose, ...sent }))
    const bare = { name: 'English', filter: {} }
    const second = await wire.exchange(
      `POST ${kb}/filters`,
      bare,
      201,
      knowledgeFilter({ ...whose, ...bare, description: null }),
    )
    await wire.exchange(`GET ${kb}/filters`, undefined, 200, { items: [first, second], nextCursor: null })
    const path = `${kb}/filters/${first.knowledgeFilterId}`
    await wire.exchange(`GET ${path}`, undefined, 200, first)
    await past(first.updatedAt)
    const patch = { name: 'German', description: null, filter: { lang: 'de' } }
    const { updatedAt } = knowledgeFilter()
    const changed = await wire.exchange(`PATCH ${path}`, patch, 200, { ...first, ...patch, updatedAt })
    expect(String(changed.updatedAt) > String(first.updatedAt)).toBe(true)
    await past(changed.updatedAt)
    const touched = await wire.exchange(`PATCH ${path}`, {}, 200, { ...changed, updatedAt })
    expect(String(touched.updatedAt) > String(changed.updatedAt)).toBe(true)
    await wire.exchange(`DELETE ${path}`, undefined, 204, undefined)
    await wire.exchange(`GET ${kb}/filters`, undefined, 200, { items: [second], nextCursor: null })
  })

  test('accept a name of 1,000, a description of 10,000 and a condition of 32,768 characters, and no more', async () => {
    const { kb } = await makePlace(wire)
    const json = {
      name: 'n'.repeat(1_000),
      description: 'd'.repeat(10_000),
      filter: { a: 'x'.repeat(32_760) },
    }
    expect(JSON.stringify(json.filter)).toHaveLength(32_768)
    const path = await makeFilter(kb, json)
    for (const longer of [
      { name: `${json.name}n` },
      { description: `${json.description}d` },
      { filter: { a: `${json.filter.a}x` } },
    ]) {
      const message = new RegExp(`^${Object.keys(longer)[0]}: must be .*characters`)
      const refused = await wire.refused(`PATCH ${path}`, { json: longer }, 400, 'validation_error')
      expect((refused.body as { error: { message: string } }).error.message).toMatch(message)
    }
    expect(await wire.get(path)).toMatchObject(json)
  })

  test('are changed by PATCH, which replaces the whole condition', async () => {
    const { kb } = await makePlace(wire)
    const path = await makeFilter(kb, { filter: { lang: 'en', year: { $gte: 1960 } } })
    await wire.exchange(`PATCH ${path}`, { filter: { kind: 'note' } }, 200, {
      ...knowledgeFilter({ name: 'ours' }),
      filter: { kind: 'note' },
    })
  })

  test('S7.3-conflict: reject an ID that exists in the knowledge base', async () => {
    const { kb, workspace } = await makePlace(wire)
    const knowledgeFilterId = '3e1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d73'
    await makeFilter(kb, { knowledgeFilterId })
    const json = { name: 'again', filter: {}, knowledgeFilterId }
    await wire.refused(`POST ${kb}/filters`, { json }, 409, 'conflict')
    await makeFilter(await makeKnowledgeBase(wire, workspace), { knowledgeFilterId })
  })

  test('ignore unknown fields and name them in a header', async () => {
    const { kb } = await makePlace(wire)
    const json = { name: 'ours', filter: {}, colour: 'red' }
    const made = await wire.send(`POST ${kb}/filters`, { json })
    expect(made).toMatchObject({ status: 201, headers: { 'x-workbase-ignored': 'colour' } })
    const path = `${kb}/filters/${(made.body as Row).knowledgeFilterId}`
    const changed = await wire.send(`PATCH ${path}`, { json: { colour: 'red' } })
    expect(changed).toMatchObject({ status: 200, headers: { 'x-workbase-ignored': 'colour' } })
  })

  test.each([
    [{ lang: { $near: 1 } }, /^filter\.lang: unknown operator '\$near'$/],
    [{ $nor: [] }, /^filter: unknown operator '\$nor'$/],
    [{ $and: [english, { lang: { $in: 5 } }] }, /^filter\.\$and\.1\.lang\.\$in: /],
  ])(
    'S7.3-validation_error: reject the condition %j with its position, at creation and at update',
    async (filter, message) => {
      const { kb } = await makePlace(wire)
      const json = { name: 'wrong', filter }
      await wire.refused(`POST ${kb}/filters`, { json }, 400, 'validation_error', message)
      const path = await makeFilter(kb)
      const before = await wire.get(path)
      await wire.refused(`PATCH ${path}`, { json }, 400, 'validation_error', message)
      expect(await wire.items(`${kb}/filters`)).toEqual([before])
    },
  )

  test('S2.7-03 S7.3-knowledge_filter_not_found: an unknown filter is 404 for show, change, delete and search', async () => {
    const { kb, workspace, knowledgeBaseId } = await makePlace(wire)
    const elsewhere = idOf(await makeFilter(await makeKnowledgeBase(wire, workspace)))
    for (const knowledgeFilterId of [unknownId, elsewhere]) {
      const path = `${kb}/filters/${knowledgeFilterId}`
      const words = new RegExp(`^knowledge filter '${knowledgeFilterId}' not found`)
      for (const line of [`GET ${path}`, `DELETE ${path}`])
        await wire.refused(line, {}, 404, 'knowledge_filter_not_found', words)
      await wire.refused(`PATCH ${path}`, { json: {} }, 404, 'knowledge_filter_not_found', words)
      const json = { text: 'x', knowledgeFilterId }
      await wire.refused(`POST ${kb}/search`, { json }, 404, 'knowledge_filter_not_found', words)
      const many = { ...json, knowledgeBaseIds: [knowledgeBaseId] }
      await wire.refused(`POST ${workspace}/search`, { json: many }, 404, 'knowledge_filter_not_found', words)
    }
  })

  test('an unknown workspace is reported first, then an unknown knowledge base, then the filter', async () => {
    const { workspace } = await makePlace(wire)
    const nobody = `${workspace}/knowledge-bases/${unknownId}/filters`
    const nowhere = `/api/v1/workspaces/${unknownId}/knowledge-bases/${unknownId}/filters`
    for (const [path, code] of [
      [nobody, 'knowledge_base_not_found'],
      [nowhere, 'workspace_not_found'],
    ] as const) {
      await wire.refused(`GET ${path}`, {}, 404, code)
      await wire.refused(`POST ${path}`, { json: { name: 'a', filter: {} } }, 404, code)
      for (const line of [`GET ${path}/${unknownId}`, `DELETE ${path}/${unknownId}`])
        await wire.refused(line, {}, 404, code)
    }
  })

  test('reject IDs that are not UUIDs', async () => {
    const { kb } = await makePlace(wire)
    await wire.refused(`GET ${kb}/filters/${notUuid}`, {}, 400, 'validation_error', /^knowledgeFilterId: /)
  })

  test('are deleted with their knowledge base', async () => {
    const { kb, workspace } = await makePlace(wire, {}, { knowledgeBaseId: unknownId })
    await makeFilter(kb)
    await wire.exchange(`DELETE ${kb}`, undefined, 204, undefined)
    const again = await makeKnowledgeBase(wire, workspace, { knowledgeBaseId: unknownId })
    expect(await wire.items(`${again}/filters`)).toEqual([])
  })
})

describe('a search with a saved filter', () => {
  test('applies it together with the filter of the request', async () => {
    const { kb, workspace, knowledgeBaseId } = await makePlace(wire)
    const old = await ingest(wire, kb, { text: 'Gliders of old.', metadata: { lang: 'en', year: 1930 } })
    const late = await ingest(wire, kb, { text: 'Gliders of late.', metadata: { lang: 'en', year: 1990 } })
    await ingest(wire, kb, { text: 'Gliders, told in German.', metadata: { lang: 'de', year: 1990 } })
    const knowledgeFilterId = idOf(await makeFilter(kb))
    const found = async (path: string, json: object) => {
      const reply = await wire.send(`POST ${path}/search`, { json: { text: 'gliders', ...json } })
      expect(reply.status, reply.text).toBe(200)
      return (reply.body as { payload: Row }[]).map(hit => hit.payload.documentId).sort()
    }
    expect(await found(kb, {})).toHaveLength(3)
    expect(await found(kb, { knowledgeFilterId })).toEqual([old, late].sort())
    const since = { filter: { year: { $gt: 1950 } } }
    expect(await found(kb, { knowledgeFilterId, ...since })).toEqual([late])
    const one = { knowledgeBaseIds: [knowledgeBaseId] }
    expect(await found(workspace, { knowledgeFilterId, ...since, ...one })).toEqual([late])
  })
})
