import { expect, test } from 'vitest'
import { permissionPhrases } from '../../src/cli/sign-in/identity.ts'
import { scopesOfRole } from '../../src/contract/scopes.ts'

test('the scopes of a caller are described, or those of its role, or everything', () => {
  const viewer = permissionPhrases({ scopes: [...scopesOfRole.viewer], role: null })
  expect(viewer).not.toContain('do everything')
  expect(permissionPhrases({ scopes: null, role: 'viewer' })).toEqual(viewer)
  expect(permissionPhrases({ scopes: null, role: null })).toEqual(['do everything'])
})
