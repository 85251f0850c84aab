import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { evaluatePolicy } from '../../src/access/policy/evaluate.ts'
import { parsePolicy } from '../../src/access/policy/parse.ts'
import type { JsonObject, Send } from './principal-requests.ts'
import { drawPolicy } from './random-policies.ts'
import { openRestrictedWorkspace, type RestrictedWorkspace } from './restricted-workspace.ts'
import { columnsOf, createDraw } from './row-model-state.ts'

const attributes: Record<string, Record<string, string>> = {
  ada: { team: 'red' },
  bob: { team: 'blue' },
  cyd: {},
  root: { admin: 'true' },
}
const recorded = Object.keys(attributes)
/** `eve` has no record, but documents name it; `zoe` has an API key; `nil` is not named anywhere. */
const principals = [...recorded, 'eve', 'zoe', 'nil']
const named = [...recorded, 'eve', 'zoe']

interface TestDocument {
  readonly id: string
  readonly metadata: Record<string, string | number | boolean | null>
  readonly visibleTo: string[] | null
  readonly owner: string | null
  readonly filename: string | null
}

let place: RestrictedWorkspace
let documents: TestDocument[]

beforeEach(async () => {
  place = await openRestrictedWorkspace()
  for (const principalId of recorded)
    await place.operator(`POST ${place.workspace}/principals`, {
      principalId,
      label: principalId.toUpperCase(),
      attributes: attributes[principalId],
    })
  await place.as('zoe')(`GET ${place.base}`)
  documents = []
  const drafts: Omit<TestDocument, 'id'>[] = [
    { metadata: { team: 'red', level: 1 }, visibleTo: ['ada'], owner: 'ada', filename: '1.md' },
    { metadata: { team: 'blue', level: 3 }, visibleTo: ['bob', 'eve'], owner: 'eve', filename: '2.md' },
    { metadata: { team: 'red', open: true }, visibleTo: ['*'], owner: null, filename: null },
    { metadata: { team: null, level: '3' }, visibleTo: null, owner: 'bob', filename: '0.md' },
    {
      metadata: { team: 1, open: false, owner_id: 'ada' },
      visibleTo: ['zoe'],
      owner: 'cyd',
      filename: '3.md',
    },
    { metadata: {}, visibleTo: ['ada', 'bob'], owner: null, filename: '1.md' },
  ]
  for (const draft of drafts) {
    const { metadata, visibleTo, owner, filename } = draft
    const body = { metadata, visibleTo, ownerPrincipalId: owner, sourceFilename: filename, status: 'ready' }
    const made = await place.operator(`POST ${place.base}/documents`, body)
    expect(made.status, made.text).toBe(201)
    documents.push({ ...draft, id: String(made.body.documentId) })
  }
})

const builtIn =
  "$principal.admin = 'true' OR current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)"

function sees(dsl: string, id: string, document: TestDocument): boolean {
  return evaluatePolicy(parsePolicy(dsl), { id, attributes: attributes[id] ?? {} }, columnsOf(document))
}

async function tool(name: string, body: JsonObject, query = '', send: Send = place.operator) {
  const answer = await send(`POST ${place.workspace}/policy/${name}${query}`, body)
  expect(answer.status, answer.text).toBe(200)
  return answer.body as JsonObject & { items: JsonObject[]; nextCursor: string | null }
}

async function setPolicy(dsl: string | null): Promise<void> {
  const set = { policyDsl: dsl, policyEnabled: dsl !== null }
  const answer = await place.operator(`PATCH ${place.base}`, set)
  expect(answer.status, answer.text).toBe(200)
}

/** Reads all pages of a tool, with few items per page. */
async function allPages(name: string, body: JsonObject) {
  const pages: Awaited<ReturnType<typeof tool>>[] = []
  let query = '?limit=2'
  for (;;) {
    const page = await tool(name, body, query)
    pages.push(page)
    if (page.nextCursor === null) return { items: pages.flatMap(({ items }) => items), pages }
    query = `?limit=2&cursor=${encodeURIComponent(page.nextCursor)}`
  }
}

const idsOf = (items: readonly JsonObject[], field = 'documentId') => items.map(item => item[field])

describe('access tools', () => {
  test('agree with the reference evaluator, with each other and with the store, for any policy', async () => {
    const { knowledgeBaseId } = place
    let current = builtIn
    await fc.assert(
      fc.asyncProperty(fc.nat(), async seed => {
        const dsl = drawPolicy(createDraw(seed))
        const diff = await allPages('diff', { knowledgeBaseId, policyDsl: dsl, documentsListed: 100 })
        for (const principalId of [...named, 'everyoneElse']) {
          const change =
            principalId === 'everyoneElse'
              ? (diff.pages[0]!.everyoneElse as JsonObject)
              : diff.items.find(item => item.principalId === principalId)
          const id = principalId === 'everyoneElse' ? 'nil' : principalId
          const changed = (from: string, to: string) =>
            documents.filter(one => !sees(from, id, one) && sees(to, id, one)).map(one => one.id)
          const [gains, loses] = [changed(current, dsl), changed(dsl, current)]
          if (gains.length + loses.length === 0 && principalId !== 'everyoneElse')
            expect(change).toBeUndefined()
          else
            for (const [list, ids] of [
              [change!.gains, gains],
              [change!.loses, loses],
            ] as [JsonObject, string[]][]) {
              expect(list.total).toBe(ids.length)
              expect(idsOf(list.documents as JsonObject[])).toEqual(ids)
            }
        }
        await setPolicy(dsl)
        current = dsl
        for (const principalId of principals) {
          const visible = documents.filter(one => sees(dsl, principalId, one)).map(one => one.id)
          const listed = await allPages('documents', { principalId, knowledgeBaseId })
          expect(idsOf(listed.items), `${principalId}: ${dsl}`).toEqual(visible)
          const stored = await place.as(principalId)(`GET ${place.base}/documents`)
          expect(idsOf(stored.body.items as JsonObject[])).toEqual(visible)
          const { items } = await tool('counts', { principalId })
          expect(items).toMatchObject([{ visible: visible.length, total: documents.length, rule: 'policy' }])
        }
        for (const document of documents) {
          const key = { knowledgeBaseId, documentId: document.id }
          const viewers = await allPages('viewers', key)
          // Keys that the comparison with the store created make all of these principals known.
          expect(idsOf(viewers.items, 'principalId')).toEqual(
            [...principals].sort().filter(id => sees(dsl, id, document)),
          )
          for (const principalId of principals) {
            const explained = await tool('explain', { principalId, ...key })
            expect(explained.visible).toBe(sees(dsl, principalId, document))
            expect((explained.reasons as unknown[]).length).toBeGreaterThan(0)
            for (const { text, position } of explained.reasons as { text: string; position: number }[])
              expect(dsl.indexOf(text, position - 1)).toBe(position - 1)
          }
        }
      }),
      { numRuns: 12 },
    )
  })
})

describe('explain', () => {
  const explain = (principalId: string, at: number, more: JsonObject = {}) =>
    tool('explain', {
      principalId,
      knowledgeBaseId: place.knowledgeBaseId,
      documentId: documents[at]!.id,
      ...more,
    })

  test('names the condition that lets a document in, its position, and the compared values', async () => {
    const dsl = "team = $principal.team OR '*' = ANY(visible_to)"
    await setPolicy(dsl)
    expect(await explain('ada', 0)).toEqual({
      visible: true,
      rule: 'policy',
      policy: dsl,
      principal: { principalId: 'ada', label: 'ADA', role: 'viewer', attributes: { team: 'red' } },
      document: {
        documentId: documents[0]!.id,
        sourceFilename: '1.md',
        ownerPrincipalId: 'ada',
        visibleTo: ['ada'],
        visibleToTotal: 1,
      },
      knowledgeBaseId: place.knowledgeBaseId,
      reasons: [
        {
          text: 'team = $principal.team',
          position: 1,
          result: 'true',
          negated: false,
          values: [
            { name: 'team', value: 'red', cut: false, missing: false },
            { name: '$principal.team', value: 'red', cut: false, missing: false },
          ],
        },
      ],
      reasonsTotal: 1,
      at: null,
    })
  })

  test('names all conditions of which one must change, and missing attributes', async () => {
    await setPolicy("team = $principal.team OR '*' = ANY(visible_to)")
    expect(await explain('cyd', 0)).toMatchObject({
      visible: false,
      reasons: [
        {
          position: 1,
          result: 'unknown',
          values: [{ value: 'red' }, { name: '$principal.team', value: null, missing: true }],
        },
        { text: "'*' = ANY(visible_to)", position: 27, result: 'false', values: [{ value: ['ada'] }] },
      ],
    })
  })

  test('names a condition inside a negation', async () => {
    await setPolicy("level >= 1 AND NOT (team = 'red' OR open = TRUE)")
    expect(await explain('ada', 0)).toMatchObject({
      visible: false,
      reasons: [{ text: "team = 'red'", position: 21, result: 'true', negated: true }],
    })
    expect((await explain('ada', 1)).reasons).toMatchObject([
      { text: 'level >= 1', negated: false, result: 'true' },
      { text: "team = 'red'", negated: true, result: 'false' },
      { text: 'open = TRUE', negated: true, result: 'false', values: [{ missing: true }] },
    ])
  })

  test('explains the built-in policy, a policy that is not saved, and access without a rule', async () => {
    expect(await explain('root', 3)).toMatchObject({
      visible: true,
      rule: 'builtIn',
      policy: builtIn,
      reasons: [{ text: "$principal.admin = 'true'", values: [{ value: 'true' }] }],
    })
    expect(await explain('root', 3, { policyDsl: 'level >= 2' })).toMatchObject({
      visible: false,
      rule: 'proposed',
      reasons: [{ text: 'level >= 2', result: 'false', values: [{ name: 'level', value: '3' }] }],
    })
    await place.operator(`PATCH ${place.workspace}`, { rlacEnabled: false })
    expect(await explain('nil', 3)).toMatchObject({ visible: true, rule: 'off', policy: null, reasons: [] })
    const { rule, everyoneElse } = await tool('viewers', {
      knowledgeBaseId: place.knowledgeBaseId,
      documentId: documents[3]!.id,
    })
    expect({ rule, everyoneElse }).toEqual({ rule: 'off', everyoneElse: true })
  })

  test('rejects an invalid policy with a position and a suggestion', async () => {
    const answer = await place.operator(`POST ${place.workspace}/policy/diff`, {
      knowledgeBaseId: place.knowledgeBaseId,
      policyDsl: "team LIKE 'r%'",
    })
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatchObject({
      code: 'validation_error',
      message: 'policyDsl: col 6: expected a comparison, IN or @>',
      hint: 'Patterns are not supported. Compare whole values with = or IN.',
    })
  })
})

describe('callers', () => {
  const bodies = () => {
    const { knowledgeBaseId } = place
    const key = { knowledgeBaseId, documentId: documents[3]!.id }
    return {
      explain: { principalId: 'ada', ...key },
      viewers: key,
      documents: { principalId: 'root', knowledgeBaseId },
      counts: { principalId: 'root' },
      diff: { knowledgeBaseId, policyDsl: null },
    }
  }
  const keyWith = async (workspace: string, scopes: string[], principalId: string) => {
    const key = { label: 'k', scopes, principalId }
    const { body } = await place.operator(`POST ${workspace}/api-keys`, key)
    const authorization = `Bearer ${body.plaintext}`
    return (line: string, json: JsonObject) => place.wb.send(line, json, { authorization })
  }

  test('security: need manage:access, whatever else they have', async () => {
    const send = await keyWith(place.workspace, ['read', 'write', 'manage:keys', 'manage:workspace'], 'root')
    for (const [name, body] of Object.entries(bodies())) {
      const { status, text, body: error } = await send(`POST ${place.workspace}/policy/${name}`, body)
      expect(status, name).toBe(403)
      expect(error.error).toMatchObject({
        code: 'forbidden',
        message: "authenticated subject is missing required scope 'manage:access'",
      })
      expect(text).not.toContain(documents[3]!.id)
    }
  })

  test('get answers about documents that they cannot see themselves', async () => {
    const send = await keyWith(place.workspace, ['manage:access'], 'cyd')
    const { documentId } = bodies().viewers
    expect(
      (await send(`POST ${place.workspace}/policy/explain`, bodies().explain)).body.document,
    ).toMatchObject({ documentId })
    const listed = await send(`POST ${place.workspace}/policy/documents`, bodies().documents)
    expect(idsOf(listed.body.items as JsonObject[])).toContain(documentId)
  })

  test('security: cannot reach another workspace, neither by path nor by IDs in the body', async () => {
    const made = await place.operator('POST /api/v1/workspaces', {
      name: 'other',
      kind: 'local',
      rlacEnabled: true,
    })
    const other = `/api/v1/workspaces/${made.body.workspaceId}`
    const send = await keyWith(other, ['manage'], 'root')
    for (const [name, body] of Object.entries(bodies())) {
      const byPath = await send(`POST ${place.workspace}/policy/${name}`, body)
      expect(byPath.status, name).toBe(403)
      const byId = await send(`POST ${other}/policy/${name}`, body)
      if (name === 'counts') expect(byId.body.items).toEqual([])
      else expect(byId.body.error, name).toMatchObject({ code: 'knowledge_base_not_found' })
      expect(byPath.text + byId.text).not.toContain(documents[3]!.id)
    }
  })

  test('get 404 for an unknown document, also of another knowledge base', async () => {
    const { body } = await place.operator(`POST ${place.workspace}/knowledge-bases`, { name: 'second' })
    const knowledgeBaseId = String(body.knowledgeBaseId)
    for (const name of ['explain', 'viewers'] as const) {
      const answer = await place.operator(`POST ${place.workspace}/policy/${name}`, {
        ...bodies()[name],
        knowledgeBaseId,
      })
      expect(answer.body.error, name).toMatchObject({ code: 'document_not_found' })
    }
  })
})
