import { expect, test } from 'vitest'
import { FairLimiter } from '../../src/base/fair-limiter.ts'

const { signal } = new AbortController()

test('a workspace without a running task starts one in an extra place', async () => {
  const limiter = new FairLimiter(2, 1)
  const started: string[] = []
  const tasks = ['a1', 'a2', 'a3', 'b1', 'b2'].map(name => {
    let end = () => {}
    const ended = new Promise<void>(resolve => {
      end = resolve
    })
    const done = limiter.run({ workspaceId: name[0]!, member: '', signal }, () => {
      started.push(name)
      return ended
    })
    return { end, done }
  })
  const settle = () => new Promise(resolve => setImmediate(resolve))
  const end = async (at: number) => {
    tasks[at]!.end()
    await tasks[at]!.done
    await settle()
  }
  await settle()
  expect(started).toEqual(['a1', 'a2', 'b1'])
  await end(0)
  expect(started).toEqual(['a1', 'a2', 'b1'])
  await end(3)
  expect(started).toEqual(['a1', 'a2', 'b1', 'a3'])
  await end(1)
  expect(started).toEqual(['a1', 'a2', 'b1', 'a3', 'b2'])
  for (const at of [2, 4]) await end(at)
})
