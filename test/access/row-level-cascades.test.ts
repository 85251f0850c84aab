import { describe, expect, test } from 'vitest'
import { workspacesPath } from '../harness/rows.ts'
import { open } from '../harness/runtime.ts'

const closed = { config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } } }

/** A workspace, a knowledge base in it, and a function that creates keys with scopes. */
async function openWithKeys({ rlacEnabled = true } = {}) {
  const wb = await open(closed)
  const made = await wb.sendAsOperator(`POST ${workspacesPath}`, { name: 'w', kind: 'local', rlacEnabled })
  const workspace = `${workspacesPath}/${made.body.workspaceId}`
  const withScopes = async (...scopes: string[]) => {
    const { body } = await wb.sendAsOperator(`POST ${workspace}/api-keys`, { label: 'key', scopes })
    const headers = { authorization: `Bearer ${body.plaintext}` }
    return (line: string, json?: unknown) => wb.send(line, json, headers)
  }
  const createBase = async (fields: object = {}) => {
    const created = await wb.sendAsOperator(`POST ${workspace}/knowledge-bases`, { name: 'kb', ...fields })
    return `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`
  }
  return { wb, workspace, withScopes, createBase }
}

describe('with row-level access, a caller without full access', () => {
  test('cannot delete a knowledge base, unless it has the scope manage:access', async () => {
    const { withScopes, createBase } = await openWithKeys()
    const base = await createBase()
    const editor = await withScopes('read', 'write')
    const refused = await editor(`DELETE ${base}`)
    expect(refused).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } })
    expect(refused.text).toContain('manage:access')
    const manager = await withScopes('write:kb', 'manage:access')
    expect((await manager(`DELETE ${base}`)).status).toBe(204)
  })

  test('cannot attach a collection, whose rows its earlier policy may have hidden', async () => {
    const { workspace, withScopes, createBase } = await openWithKeys()
    const base = await createBase()
    const attached = { name: 'kb', vectorCollection: 'kb', attach: true }
    const attach = (send: Awaited<ReturnType<typeof withScopes>>) =>
      send(`POST ${workspace}/knowledge-bases`, attached)
    expect((await attach(await withScopes('write'))).status).toBe(403)
    // The collection is in use, so the request passes the check of the scope only.
    const manager = await withScopes('write', 'manage:access')
    expect((await attach(manager)).body).toMatchObject({ error: { code: 'collection_name_taken' } })
    expect((await manager(`GET ${base}`)).status).toBe(200)
  })

  test('cannot delete an agent with the conversations of other principals', async () => {
    const { wb, workspace, withScopes } = await openWithKeys()
    const agent = await wb.sendAsOperator(`POST ${workspace}/agents`, { name: 'agent' })
    const path = `${workspace}/agents/${agent.body.agentId}`
    const owner = await withScopes('read')
    const conversation = await owner(`POST ${path}/conversations`, {})
    const editor = await withScopes('read', 'write')
    expect((await editor(`DELETE ${path}`)).body).toMatchObject({ error: { code: 'forbidden' } })
    expect((await owner(`GET ${path}/conversations/${conversation.body.conversationId}`)).status).toBe(200)
    const manager = await withScopes('write:agents', 'manage:access')
    expect((await manager(`DELETE ${path}`)).status).toBe(204)
  })

  test('sees no state of the embedder, whose figures depend on hidden rows', async () => {
    const { wb, withScopes, createBase } = await openWithKeys()
    const base = await createBase()
    const editor = await withScopes('read', 'write')
    const shown = async () => (await editor(`GET ${base}`)).text
    const before = await shown()
    expect(before).not.toContain('embedder')
    for (let n = 0; n < 12; n++)
      await wb.sendAsOperator(`POST ${base}/ingest`, { text: `A hidden text about wings and number${n}.` })
    await wb.settle()
    expect(await shown()).toBe(before)
    expect((await wb.sendAsOperator(`GET ${base}`)).body.embedder).toMatchObject({ chunks: 12 })
  })
})

test('without row-level access, an editor deletes knowledge bases and agents', async () => {
  const { wb, workspace, withScopes, createBase } = await openWithKeys({ rlacEnabled: false })
  const editor = await withScopes('write')
  expect((await editor(`DELETE ${await createBase()}`)).status).toBe(204)
  const agent = await wb.sendAsOperator(`POST ${workspace}/agents`, { name: 'agent' })
  expect((await editor(`DELETE ${workspace}/agents/${agent.body.agentId}`)).status).toBe(204)
})
