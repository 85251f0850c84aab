import { expect, test } from 'vitest'
import { makeBase, makeWorkspace } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

test('S7.3-kb_name_taken S7.3-05: a request that loses the race for a name gets the error of a later request', async () => {
  const wb = await open()
  const { workspaceId } = await makeWorkspace(wb)
  // In one turn of the event loop, all requests find the name free, and the store decides.
  const outcomes = await Promise.allSettled(
    Array.from({ length: 6 }, () => makeBase(wb, { workspaceId, name: 'raced' })),
  )
  const lost = outcomes.filter(outcome => outcome.status === 'rejected')
  expect(lost.map(({ reason }) => reason.code)).toEqual(Array(5).fill('kb_name_taken'))
  await makeBase(wb, { name: 'raced' })
})

test('S7.3-kb_name_taken: a conflict between the two checks is reported by name, not by collection', async () => {
  const meanwhile: (() => Promise<unknown>)[] = []
  const wb = await open({
    content: store => ({
      ...store,
      collection: async key => {
        await meanwhile.pop()?.()
        return store.collection(key)
      },
    }),
  })
  const { workspaceId } = await makeWorkspace(wb)
  const make = () => makeBase(wb, { workspaceId, name: 'raced' })
  meanwhile.push(make)
  await expect(make()).rejects.toMatchObject({ code: 'kb_name_taken' })
})
