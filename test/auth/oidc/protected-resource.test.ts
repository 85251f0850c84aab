import { expect, test } from 'vitest'
import { ProtectedResources } from '../../../src/auth/oidc/protected-resource.ts'
import type { Scope } from '../../../src/contract/scopes.ts'
import { oidcClient, oidcConfig } from './oidc-fixture.ts'

const workspaceId = '11111111-1111-4111-8111-111111111111'
const path = `/api/v1/workspaces/${workspaceId}/mcp`
const metadata = `resource_metadata="https://wb.example/.well-known/oauth-protected-resource${path}"`

function resourcesWith(scopes: Scope[]) {
  const oidc = oidcConfig('https://id.example', { scopes, client: oidcClient() })
  return new ProtectedResources('https://wb.example/', oidc)
}

test('lists the scopes of sign-ins before those of Workbase', () => {
  expect(resourcesWith(['read']).metadata(path)).toMatchObject({
    resource: `https://wb.example${path}`,
    scopes_supported: ['openid', 'profile', 'email', 'read'],
  })
})

test.each<[scopes: Scope[], asked: string | undefined]>([
  [['write', 'write:ingest'], 'write:ingest'],
  [['read', 'write'], 'write'],
  [['read'], undefined],
])('with granted scopes %j, requests %s if write:ingest is missing', (scopes, asked) => {
  const challenge = resourcesWith(scopes).insufficientScopeChallenge(workspaceId, 'write:ingest')
  expect(challenge).toBe(asked && `Bearer error="insufficient_scope", scope="${asked}", ${metadata}`)
})
