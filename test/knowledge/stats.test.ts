import { expect, test, vi } from 'vitest'
import { type AccessOf, noPrincipal } from '../../src/access/row-access.ts'
import { KnowledgeBases } from '../../src/knowledge/knowledge-bases.ts'
import { openAccess } from '../harness/open-access.ts'
import { only } from '../storage/content-data.ts'

test('a caller who may see only some rows gets no statistics', async () => {
  const bases = new KnowledgeBases({} as never)
  vi.spyOn(bases, 'openContext').mockResolvedValue({} as never)
  const address = { workspaceId: 'w', knowledgeBaseId: 'k' }
  const rowAccess: AccessOf = async (...args) => ({
    ...(await openAccess(...args)),
    visibility: () => only('alice'),
  })
  await expect(bases.stats(address, { rowAccess: id => rowAccess(noPrincipal, id) })).rejects.toMatchObject({
    code: 'forbidden',
    status: 403,
  })
})
