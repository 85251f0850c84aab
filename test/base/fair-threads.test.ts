import { expect, test } from 'vitest'
import { FairThreads } from '../../src/base/fair-threads.ts'
import { inlineHost } from '../../src/base/threads.ts'

test('a call runs alone on its thread, and another workspace has a thread of its own', async () => {
  let opened = 0
  const closed: number[] = []
  const threads = new FairThreads({ threads: 1, extraThreads: 1 }, () => {
    const number = ++opened
    return inlineHost({ number: () => number }, () => {
      closed.push(number)
    })
  })
  const ends = new Map<string, () => void>()
  const started: string[] = []
  const call = (name: string) =>
    threads.run({ workspaceId: name[0]!, member: '' }, async host => {
      started.push(`${name} on ${await host.run('number', undefined)}`)
      await new Promise<void>(resolve => ends.set(name, resolve))
    })
  const settle = () => new Promise(resolve => setImmediate(resolve))
  const calls = ['a1', 'a2', 'b1'].map(call)
  await settle()
  expect(started).toEqual(['a1 on 2', 'b1 on 1'])
  ends.get('a1')!()
  await settle()
  expect(started).toEqual(['a1 on 2', 'b1 on 1', 'a2 on 2'])
  await threads.close()
  expect(closed, 'also threads with a running call').toEqual([1, 2])
  for (const name of ['a2', 'b1']) ends.get(name)!()
  await Promise.all(calls)
})
