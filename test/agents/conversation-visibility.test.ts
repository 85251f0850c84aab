import { describe, expect, test } from 'vitest'
import { anonymousContext, operatorContext, type Subject, verifiedContext } from '../../src/access/subject.ts'
import { conversationVisibility, isConversationVisible } from '../../src/agents/conversation-visibility.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import { formOf } from '../harness/agents.ts'
import { open, type TestResponse, type TestRuntime } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

const closed = {
  environment: { FIRST_TOKEN: 'the-token-of-the-operator-of-these-tests' },
  config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST_TOKEN' } },
} as const
const all = '/api/v1/workspaces'

/** Creates a workspace with an agent, and a function to create keys that send requests. */
async function openWithAgent(rlacEnabled: boolean) {
  const wb = await open(closed)
  const made = await wb.sendAsOperator(`POST ${all}`, { name: 'first', rlacEnabled })
  const workspace = `${all}/${made.body.workspaceId}`
  const agent = await wb.sendAsOperator(`POST ${workspace}/agents`, { name: 'agent' })
  const list = `${workspace}/agents/${agent.body.agentId}/conversations`
  const keyOf = async (grant: object): Promise<KeyHolder> => {
    const { body } = await wb.sendAsOperator(`POST ${workspace}/api-keys`, { label: 'key', ...grant })
    const { keyId } = body.key as { keyId: string }
    const headers = { authorization: `Bearer ${body.plaintext}` }
    return { keyId, send: (line, json) => wb.send(line, json, headers) }
  }
  return { wb, workspace, list, keyOf }
}

interface KeyHolder {
  readonly keyId: string
  send(line: string, json?: unknown): Promise<TestResponse>
}

const idsOf = ({ body }: TestResponse) =>
  (body.items as { conversationId: string }[]).map(({ conversationId }) => conversationId)

function subject(fields: Partial<Subject>): ReturnType<typeof verifiedContext> {
  return verifiedContext('any', {
    id: 'someone',
    label: null,
    type: 'apiKey',
    workspaceScopes: ['w'],
    scopes: ['read', 'write'],
    role: null,
    principalId: 'p',
    keyLifetimeMaxMs: null,
    ...fields,
  })
}

describe('visible conversations', () => {
  const on = { rlacEnabled: true }

  test('are all conversations without row-level access', () => {
    for (const auth of [anonymousContext('disabled'), subject({}), operatorContext('any', 'x')])
      expect(conversationVisibility({ rlacEnabled: false }, auth)).toEqual({ kind: 'all' })
  })

  test.each<[readonly Scope[] | null, string]>([
    [['read', 'write'], 'principal'],
    [['read:chat'], 'principal'],
    [['manage:keys', 'manage:workspace'], 'principal'],
    [['manage:access'], 'all'],
    [['manage'], 'all'],
    [null, 'all'],
  ])('with row-level access, for a key with %j, are limited to: %s', (scopes, expected) => {
    expect(conversationVisibility(on, subject({ scopes })).kind).toBe(expected)
  })

  test('with row-level access, are none for a caller without a principal, not even conversations without an owner', () => {
    for (const auth of [
      anonymousContext('disabled'),
      anonymousContext('any'),
      subject({ principalId: null }),
    ]) {
      const visibility = conversationVisibility(on, auth)
      expect(visibility).toEqual({ kind: 'none' })
      expect(isConversationVisible(visibility, { ownerPrincipalId: null })).toBe(false)
    }
    expect(isConversationVisible(conversationVisibility(on, subject({})), { ownerPrincipalId: null })).toBe(
      false,
    )
  })
})

describe('with row-level access on', () => {
  test('a conversation is visible to its creator, to keys of that principal and to holders of manage:access, and 404 for others on every route', async () => {
    const { workspace, list, keyOf } = await openWithAgent(true)
    const owner = await keyOf({ role: 'editor', principalId: 'ada' })
    const twin = await keyOf({ role: 'viewer', principalId: 'ada' })
    const other = await keyOf({ role: 'editor', principalId: 'bob' })
    const unnamed = await keyOf({ role: 'editor' })
    const manager = await keyOf({ scopes: ['read', 'manage:access'] })
    const { body } = await owner.send(`POST ${list}`, { title: 'ours' })
    const conversationId = String(body.conversationId)
    const path = `${list}/${conversationId}`
    const lists = [list, `${workspace}/conversations`]
    const attached = await owner.send(`POST ${path}/attachments`, formOf('ours'))
    const attachmentId = String(attached.body.attachmentId)

    for (const person of [owner, twin, manager]) {
      for (const line of lists) expect(idsOf(await person.send(`GET ${line}`))).toEqual([conversationId])
      expect((await person.send(`GET ${path}`)).body).toMatchObject({ title: 'ours' })
      expect((await person.send(`GET ${path}/messages`)).status).toBe(200)
      expect((await person.send(`PATCH ${path}`, { title: 'ours' })).status).toBe(200)
      expect((await person.send(`GET ${path}/attachments/${attachmentId}`)).body).toMatchObject({
        text: 'ours',
      })
    }
    for (const person of [other, unnamed]) {
      for (const line of lists)
        expect((await person.send(`GET ${line}`)).body).toEqual({ items: [], nextCursor: null })
      for (const [line, json] of [
        [`GET ${path}`],
        [`PATCH ${path}`, { title: 'theirs' }],
        [`DELETE ${path}`],
        [`GET ${path}/messages`],
        [`GET ${path}/messages/${conversationId}`],
        [`GET ${path}/attachments`],
        [`GET ${path}/attachments/${attachmentId}`],
        [`DELETE ${path}/attachments/${attachmentId}`],
        [`POST ${path}/attachments`, formOf('theirs')],
      ] as const)
        expect(await person.send(line, json), line).toMatchObject({
          status: 404,
          body: { error: { code: 'conversation_not_found' } },
        })
    }
    expect((await owner.send(`DELETE ${path}`)).status).toBe(204)
  })

  test('a conversation ID in use is rejected with one message, whether its owner is the caller or another principal', async () => {
    const { list, keyOf } = await openWithAgent(true)
    const [owner, other] = [await keyOf({ principalId: 'ada' }), await keyOf({ principalId: 'bob' })]
    const { conversationId } = (await owner.send(`POST ${list}`, { title: 'ours' })).body
    const errorFor = async ({ send }: KeyHolder) => {
      const { status, body } = await send(`POST ${list}`, { conversationId, title: 'theirs' })
      return { status, ...(body.error as object), requestId: '' }
    }
    const ofAnother = await errorFor(other)
    expect(ofAnother).toMatchObject({ status: 409, code: 'conflict' })
    expect(ofAnother).toEqual(await errorFor(owner))
    expect(idsOf(await other.send(`GET ${list}`))).toEqual([])
  })

  test('pages are full, even if other callers created conversations in between', async () => {
    const { workspace, list, keyOf } = await openWithAgent(true)
    const [ada, bob] = [await keyOf({ role: 'viewer' }), await keyOf({ role: 'viewer' })]
    const own: string[] = []
    for (let n = 0; n < 6; n++) {
      const { body } = await (n % 2 ? bob : ada).send(`POST ${list}`, {})
      if (n % 2 === 0) own.push(String(body.conversationId))
    }
    for (const line of [list, `${workspace}/conversations`]) {
      const first = await ada.send(`GET ${line}?limit=2`)
      const cursor = String(first.body.nextCursor)
      const second = await ada.send(`GET ${line}?limit=2&cursor=${cursor}`)
      expect([...idsOf(first), ...idsOf(second)].sort()).toEqual([...own].sort())
      expect([idsOf(first).length, second.body.nextCursor]).toEqual([2, null])
      const stolen = await bob.send(`GET ${line}?cursor=${cursor}`)
      expect(stolen.body).toMatchObject({ error: { code: 'invalid_cursor' } })
    }
  })

  test('S7.3-policy_principal_required: a caller without a principal cannot create a conversation', async () => {
    const wb = await open()
    const made = await wb.send(`POST ${all}`, { name: 'first', rlacEnabled: true })
    const workspace = `${all}/${made.body.workspaceId}`
    const agent = await wb.send(`POST ${workspace}/agents`, { name: 'agent' })
    const list = `${workspace}/agents/${agent.body.agentId}/conversations`
    expect(await wb.send(`POST ${list}`, {})).toMatchObject({
      status: 401,
      body: { error: { code: 'policy_principal_required' } },
    })
    const theirs = await wb.sendAsOperator(`POST ${list}`, {})
    for (const line of [list, `${workspace}/conversations`]) {
      expect((await wb.send(`GET ${line}`)).body).toEqual({ items: [], nextCursor: null })
      expect(idsOf(await wb.sendAsOperator(`GET ${line}`))).toEqual([theirs.body.conversationId])
    }
    expect((await wb.send(`GET ${list}/${theirs.body.conversationId}`)).status).toBe(404)
    const bad = await wb.send(`GET ${list}?cursor=x`)
    expect(bad.body).toMatchObject({ error: { code: 'invalid_cursor' } })
  })
})

describe('with row-level access off', () => {
  test('S4.2-30: every key can read and rename all conversations, and delete those that it created', async () => {
    const { workspace, list, keyOf } = await openWithAgent(false)
    const owner = await keyOf({ role: 'editor' })
    const { body } = await owner.send(`POST ${list}`, { title: 'ours' })
    const path = `${list}/${body.conversationId}`
    for (const scope of ['read', 'read:chat', 'write:kb', 'manage:keys', 'tools:invoke']) {
      const person = await keyOf({ scopes: [scope] })
      const own = `${list}/${(await person.send(`POST ${list}`, {})).body.conversationId}`
      for (const [line, json, status] of [
        [`GET ${list}`, undefined, 200],
        [`GET ${workspace}/conversations`, undefined, 200],
        [`GET ${path}`, undefined, 200],
        [`GET ${path}/messages`, undefined, 200],
        [`PATCH ${path}`, { title: scope }, 200],
        [`DELETE ${path}`, undefined, 403],
        [`DELETE ${own}`, undefined, 204],
      ] as const)
        expect((await person.send(line, json)).status, `${scope}: ${line}`).toBe(status)
    }
  })

  test.each(['write', 'manage'])('a key with %s deletes conversations of other callers', async scope => {
    const { list, keyOf } = await openWithAgent(false)
    const { body } = await (await keyOf({ scopes: ['read'] })).send(`POST ${list}`, {})
    const path = `${list}/${body.conversationId}`
    const other = await keyOf({ scopes: [scope] })
    expect((await other.send(`DELETE ${path}`)).status).toBe(204)
  })

  test('owners are stored and not shown, and apply after row-level access is turned on', async () => {
    const { wb, workspace, list, keyOf } = await openWithAgent(false)
    const [ada, bob] = [await keyOf({ role: 'admin', principalId: 'ada' }), await keyOf({ role: 'editor' })]
    const hers = await ada.send(`POST ${list}`, {})
    const his = await bob.send(`POST ${list}`, {})
    const operators = await wb.sendAsOperator(`POST ${list}`, {})
    expect(ownersIn(wb)).toEqual(['ada', bob.keyId, null])
    for (const { text } of [hers, his, operators, await ada.send(`GET ${list}`)])
      expect(text).not.toContain('owner')
    expect(idsOf(await bob.send(`GET ${list}`))).toHaveLength(3)
    expect((await ada.send(`PATCH ${workspace}`, { rlacEnabled: true })).status).toBe(200)
    expect(idsOf(await bob.send(`GET ${list}`))).toEqual([his.body.conversationId])
    expect(idsOf(await ada.send(`GET ${list}`))).toHaveLength(3)
  })
})

function ownersIn({ dataDir }: TestRuntime): unknown[] {
  return storeFile(dataDir)
    .all('SELECT body FROM conversations ORDER BY ordinal')
    .map(({ body }) => JSON.parse(String(body)).ownerPrincipalId)
}
