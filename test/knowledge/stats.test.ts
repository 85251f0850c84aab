import { expect, test, vi } from 'vitest'
import { KnowledgeBases } from '../../src/knowledge/knowledge-bases.ts'
import { only } from '../storage/content-data.ts'

test('a caller who may see only some rows gets no statistics', async () => {
  const bases = new KnowledgeBases({} as never)
  vi.spyOn(bases, 'openContext').mockResolvedValue({} as never)
  const address = { workspaceId: 'w', knowledgeBaseId: 'k' }
  await expect(bases.stats(address, { visibility: only('alice') })).rejects.toMatchObject({
    code: 'forbidden',
    status: 403,
  })
})
