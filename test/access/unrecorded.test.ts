import { describe, expect, test } from 'vitest'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { changeStoreFile } from '../harness/store-file.ts'

const all = '/api/v1/workspaces'

/** Opens a runtime with a workspace and a key, whose database rejects new audit records. */
async function openWithoutAudit() {
  const opened = await open()
  const operator = (line: string, json?: unknown) => opened.sendAsOperator(line, json)
  const { workspaceId } = (await operator(`POST ${all}`, { name: 'first' })).body
  const keys = `${all}/${workspaceId}/api-keys`
  const { key } = (await operator(`POST ${keys}`, { label: 'one' })).body as { key: { keyId: string } }
  const principals = `${all}/${workspaceId}/principals`
  const bases = `${all}/${workspaceId}/knowledge-bases`
  const { knowledgeBaseId } = (await operator(`POST ${bases}`, { name: 'handbook' })).body
  await operator(`POST ${principals}`, { principalId: 'alice' })
  changeStoreFile(
    opened.dataDir,
    "CREATE TRIGGER no BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'a text of the trigger'); END",
  )
  return {
    operator,
    keys,
    key,
    principals,
    bases,
    base: `${bases}/${knowledgeBaseId}`,
    workspace: `${all}/${workspaceId}`,
  }
}

const lists = async (operator: (line: string) => ReturnType<TestRuntime['send']>, ...paths: string[]) =>
  Promise.all(paths.map(async path => (await operator(`GET ${path}`)).body.items))

describe('a store that rejects audit records', () => {
  test('S6-08 S6-09: makes audited changes fail with control_plane_unavailable, and stores none of them', async () => {
    const { operator, keys, key, principals, bases, base, workspace } = await openWithoutAudit()
    const before = await lists(operator, all, keys, principals, bases)
    const refused = [
      await operator(`POST ${all}`, { name: 'second' }),
      await operator(`POST ${keys}`, { label: 'two' }),
      await operator(`POST ${keys}/${key.keyId}/rotate`, {}),
      await operator(`DELETE ${keys}/${key.keyId}`),
      await operator(`POST ${principals}`, { principalId: 'bob' }),
      await operator(`PATCH ${principals}/alice`, { role: 'admin' }),
      await operator(`DELETE ${principals}/alice`),
      await operator(`PATCH ${workspace}`, { rlacEnabled: true }),
      await operator(`PATCH ${base}`, { policyEnabled: true }),
      await operator(`DELETE ${workspace}`),
    ]
    for (const { status, body, text } of refused) {
      expect([status, body.error]).toEqual([
        503,
        expect.objectContaining({ code: 'control_plane_unavailable' }),
      ])
      expect(text).not.toContain('trigger')
    }
    expect(await lists(operator, all, keys, principals, bases)).toEqual(before)
  })
})
