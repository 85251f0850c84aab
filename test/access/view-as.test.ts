import { describe, expect, test } from 'vitest'
import { serveOverHttp } from '../harness/http-runtime.ts'
import { codeOf, ingest, itemsOf, openRestrictedWorkspace, workspacesPath } from '../harness/rows.ts'
import { open } from '../harness/runtime.ts'

const viewAs = (principal: string) => ({ 'x-view-as-principal': principal })

describe('x-view-as-principal, with authentication disabled', () => {
  const applied = [401, 'policy_principal_required']

  /** Returns the response to a request as `alice` that arrives over a connection. */
  async function listAs(runtime: object, headers: object) {
    const { wb, base } = await openRestrictedWorkspace({ config: { runtime } })
    const served = await serveOverHttp(wb)
    const reply = await served.send(`GET ${base}/documents`, undefined, { ...viewAs('alice'), ...headers })
    return [reply.status, codeOf(reply)]
  }

  test('works for requests to a loopback name or address', async () => {
    for (const host of ['localhost', '127.0.0.1:8080', '[::1]:8080'])
      expect(await listAs({}, { host })).toEqual([200, undefined])
  })

  test.each([
    ['with a forwarding header', {}, { 'x-forwarded-for': '10.0.0.1' }],
    ['if proxies are trusted', { trustProxyHeaders: ['127.0.0.1'] }, {}],
    ['if the runtime has a public origin', { publicOrigin: 'https://wb.example.com' }, {}],
    [
      'for a host that is not a loopback name',
      { allowedHosts: ['wb.example.com'] },
      { host: 'wb.example.com' },
    ],
  ])('is ignored %s', async (_, runtime, headers) => {
    expect(await listAs(runtime, headers)).toEqual(applied)
  })
})

describe('a caller that views a workspace as a principal', () => {
  async function openWithConversations() {
    const wb = await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } } })
    const made = await wb.sendAsOperator(`POST ${workspacesPath}`, { name: 'w', rlacEnabled: true })
    const workspace = `${workspacesPath}/${made.body.workspaceId}`
    const agent = await wb.sendAsOperator(`POST ${workspace}/agents`, { name: 'agent' })
    const conversations = `${workspace}/agents/${agent.body.agentId}/conversations`
    const keyOf = async (grant: object) => {
      const { body } = await wb.sendAsOperator(`POST ${workspace}/api-keys`, { label: 'key', ...grant })
      const headers = { authorization: `Bearer ${body.plaintext}` }
      return (line: string, json?: unknown, more: object = {}) => wb.send(line, json, { ...headers, ...more })
    }
    const [ada, bob] = [await keyOf({ principalId: 'ada' }), await keyOf({ principalId: 'bob' })]
    await ada(`POST ${conversations}`, { title: 'of ada' })
    await bob(`POST ${conversations}`, { title: 'of bob' })
    const manager = await keyOf({ label: 'manager', scopes: ['read', 'write', 'manage:access'] })
    return { wb, workspace, conversations, manager, ada }
  }

  const titles = (reply: Parameters<typeof itemsOf>[0]) => itemsOf(reply).map(({ title }) => title)

  test('sees the conversations of that principal only, and creates conversations for it', async () => {
    const { conversations, workspace, manager, ada } = await openWithConversations()
    expect(titles(await manager(`GET ${conversations}`))).toHaveLength(2)
    for (const line of [`GET ${conversations}`, `GET ${workspace}/conversations`])
      expect(titles(await manager(line, undefined, viewAs('ada')))).toEqual(['of ada'])
    const [ofBob] = itemsOf(await manager(`GET ${conversations}`, undefined, viewAs('bob')))
    const path = `${conversations}/${ofBob!.conversationId}`
    expect((await manager(`GET ${path}`)).status).toBe(200)
    expect((await manager(`GET ${path}`, undefined, viewAs('ada'))).status).toBe(404)
    expect((await manager(`POST ${conversations}`, { title: 'new' }, viewAs('ada'))).status).toBe(201)
    expect(titles(await ada(`GET ${conversations}`)).sort()).toEqual(['new', 'of ada'])
  })

  test('is named in the audit trail, with the principal', async () => {
    const { workspace, manager } = await openWithConversations()
    const created = await manager(`POST ${workspace}/knowledge-bases`, { name: 'kb' }, viewAs('ada'))
    const base = `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`
    const document = await ingest((line, json) => manager(line, json, viewAs('ada')), base, {
      text: 'A text.',
    })
    await manager(`DELETE ${document}`, undefined, viewAs('ada'))
    const [record] = itemsOf(await manager(`GET ${workspace}/audit?action=document.delete`))
    expect(record).toMatchObject({ subject: { type: 'apiKey', label: 'manager', viewAs: 'ada' } })
    const [own] = itemsOf(await manager(`GET ${workspace}/audit?action=api_key.create`))
    expect(own!.subject).not.toHaveProperty('viewAs')
    const denied = await manager(`GET ${workspace}/api-keys`, undefined, viewAs('ada'))
    expect(denied.status).toBe(403)
    const [refusal] = itemsOf(await manager(`GET ${workspace}/audit?action=auth.api_denied`))
    expect(refusal).toMatchObject({ subject: { label: 'manager', viewAs: 'ada' } })
  })

  test('is named in the decisions, which are not those of the principal', async () => {
    const { workspace, manager, ada } = await openWithConversations()
    const created = await manager(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
    const base = `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`
    const hidden = await ingest((line, json) => manager(line, json, viewAs('bob')), base, { text: 'A text.' })
    expect((await manager(`GET ${hidden}`, undefined, viewAs('ada'))).status).toBe(404)
    const denials = `GET ${workspace}/audit/decisions?decision=deny`
    const [denial, ...others] = itemsOf(await manager(denials))
    expect(others).toEqual([])
    expect(denial).toMatchObject({
      principalId: 'ada',
      action: 'get',
      viewedBy: { type: 'apiKey', label: 'manager' },
    })
    expect(itemsOf(await ada(denials))).toEqual([])
    await ada(`GET ${hidden}`)
    const [own] = itemsOf(await ada(denials))
    expect(own).toMatchObject({ principalId: 'ada', action: 'get' })
    expect(own).not.toHaveProperty('viewedBy')
  })

  test('has an ID that is valid', async () => {
    const { conversations, manager } = await openWithConversations()
    const invalid = await manager(`GET ${conversations}`, undefined, viewAs('a b'))
    expect([invalid.status, codeOf(invalid)]).toEqual([400, 'validation_error'])
  })
})
