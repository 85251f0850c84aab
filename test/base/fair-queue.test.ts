import { expect, test } from 'vitest'
import { FairQueue } from '../../src/base/fair-queue.ts'

function takeAll(queue: FairQueue<string>): string[] {
  const taken: string[] = []
  for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item)
  return taken
}

test('workspaces take turns, and so do the members of a workspace', () => {
  const queue = new FairQueue<string>()
  for (const item of ['a1 x', 'a1 y', 'a2 x', 'a2 y', 'b1 x', 'b1 y'])
    queue.add(item[0]!, item.slice(0, 2), item)
  expect(takeAll(queue)).toEqual(['a1 x', 'b1 x', 'a2 x', 'b1 y', 'a1 y', 'a2 y'])
})

test('a deleted item is not taken, and does not count', () => {
  const queue = new FairQueue<string>()
  queue.add('a', 'a1', 'x')
  queue.add('a', 'a1', 'y')
  queue.delete('a', 'a1', 'x')
  queue.delete('a', 'a1', 'missing')
  queue.delete('b', 'b1', 'x')
  expect(queue.count('a', 'a1')).toBe(1)
  expect(takeAll(queue)).toEqual(['y'])
  expect(queue.count('a', 'a1')).toBe(0)
})
