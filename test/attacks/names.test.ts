import { expect, test } from 'vitest'
import { records } from '../../src/contract/records.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

test.each(['upsert', 'deleteRecord'] as const)(
  'S1-07: a late %s for a deleted knowledge base does not affect a new one with that name',
  async op => {
    let meanwhile: (() => Promise<unknown>) | undefined
    const content = (store: ContentStore): ContentStore => ({
      ...store,
      async write(changes, rows) {
        const act = changes.some(change => change.op === op) ? meanwhile : undefined
        if (act) meanwhile = undefined
        await act?.()
        return store.write(changes, rows)
      },
    })
    const wb = await open({ content })
    const old = await makeBase(wb, { name: 'same' })
    const { workspaceId } = old.params
    const put = (params: typeof old.params, text: string) =>
      wb.call(records.upsert, { params, body: { records: [{ id: 'r', text }] } })
    await put(old.params, 'old')
    let next = old
    meanwhile = async () => {
      await old.delete()
      next = await makeBase(wb, { name: 'same', workspaceId })
      await put(next.params, 'new')
    }

    const late =
      op === 'upsert'
        ? put(old.params, 'late')
        : wb.call(records.delete, { params: { ...old.params, recordId: 'r' } })
    await expect(late).rejects.toMatchObject({ code: 'knowledge_base_not_found' })
    expect((await next.search('new')).map(hit => hit.payload)).toEqual([{ chunkText: 'new' }])
  },
)
