import { describe, expect, test } from 'vitest'
import { decideAccess } from '../../src/access/authorize.ts'
import { anonymousContext, verifiedContext } from '../../src/access/subject.ts'
import type { WorkspaceAccess } from '../../src/contract/access.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import { externalToolAccess, mcpToolAccess } from '../../src/contract/tool-access.ts'

const here = '11111111-1111-4111-8111-111111111111'

function isAllowed(rule: WorkspaceAccess, scopes: Scope[] | null): boolean {
  const subject = {
    id: 's',
    label: null,
    type: 'apiKey',
    role: null,
    principalId: null,
    keyLifetimeMaxMs: null,
  } as const
  const auth = verifiedContext('apiKey', { ...subject, workspaceScopes: [here], scopes })
  return decideAccess({ rule, workspaceId: here }, { auth }).allow
}

const mcp = Object.entries(mcpToolAccess)
const changing: Readonly<Record<string, Scope>> = {
  ingest_text: 'write:ingest',
  delete_document: 'write:ingest',
  create_knowledge_base: 'write:kb',
  delete_knowledge_base: 'write:kb',
}

describe('S5.5-21 S5.5-22 S5.5-23 S5.5-24: MCP tools', () => {
  test.each(mcp.filter(([tool]) => tool in changing))('%s needs its fine-grained scope', (tool, rule) => {
    const scope = changing[tool]!
    expect(isAllowed(rule, [scope])).toBe(true)
    expect(isAllowed(rule, ['write'])).toBe(true)
    const others: Scope[] = ['write:ingest', 'write:kb']
    expect(
      isAllowed(rule, ['read', 'manage', 'tools:invoke', ...others.filter(other => other !== scope)]),
    ).toBe(false)
  })

  test.each(mcp.filter(([tool]) => !(tool in changing)))(
    '%s needs only access to the workspace',
    (_tool, rule) => {
      expect(isAllowed(rule, ['write:kb'])).toBe(true)
      expect(isAllowed(rule, [])).toBe(true)
    },
  )
})

describe('S5.5-26 S5.5-27 S5.5-28: external tools', () => {
  test.each<[held: Scope[] | null, expected: boolean]>([
    [['tools:invoke'], true],
    [['write'], true],
    [['read', 'write'], true],
    [null, true],
    [['read'], false],
    [['manage'], false],
    [['write:ingest', 'write:kb', 'write:services', 'write:agents'], false],
  ])('allow a caller with %j: %j', (held, expected) => {
    expect(isAllowed(externalToolAccess, held)).toBe(expected)
  })

  test('report tools:invoke as the missing scope if both scopes are missing', () => {
    const auth = verifiedContext('apiKey', {
      id: 's',
      label: null,
      type: 'apiKey',
      workspaceScopes: [here],
      scopes: ['read'],
      role: null,
      principalId: null,
      keyLifetimeMaxMs: null,
    })
    const decision = decideAccess({ rule: externalToolAccess, workspaceId: here }, { auth })
    expect(decision).toMatchObject({ allow: false, requiredScope: 'tools:invoke' })
  })

  test('S5.5-01: allow an anonymous caller', () => {
    const auth = anonymousContext('apiKey')
    expect(decideAccess({ rule: externalToolAccess, workspaceId: here }, { auth }).allow).toBe(true)
  })
})
