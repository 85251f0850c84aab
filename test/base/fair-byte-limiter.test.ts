import { expect, test } from 'vitest'
import { FairByteLimiter } from '../../src/base/fair-byte-limiter.ts'

const forever = new AbortController().signal

/** A limiter of 10 bytes, and tasks that run until they are ended. */
function setUp() {
  const limiter = new FairByteLimiter(10)
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string, bytes: number, workspaceId = 'a', signal = forever) =>
    limiter.run({ workspaceId, bytes, signal }, () => {
      started.push(name)
      return new Promise<void>(resolve => ends.set(name, resolve))
    })
  const end = async (name: string) => {
    ends.get(name)!()
    await new Promise(setImmediate)
  }
  return { run, end, started }
}

test('runs tasks up to a total size, in order, and a task that is larger alone', async () => {
  const { run, end, started } = setUp()
  for (const [name, bytes] of [
    ['one', 4],
    ['two', 6],
    ['large', 50],
    ['three', 1],
  ] as const)
    void run(name, bytes)
  await new Promise(setImmediate)
  expect(started).toEqual(['one', 'two'])
  await end('one')
  expect(started, 'nothing overtakes the large task').toHaveLength(2)
  await end('two')
  expect(started.slice(2)).toEqual(['large'])
  await end('large')
  expect(started.slice(3)).toEqual(['three'])
})

test('lets workspaces take turns', async () => {
  const { run, end, started } = setUp()
  for (const name of ['a1', 'a2', 'a3', 'a4']) void run(name, 10)
  void run('b1', 10, 'b')
  await new Promise(setImmediate)
  for (const name of ['a1', 'b1', 'a2', 'a3']) await end(name)
  expect(started).toEqual(['a1', 'b1', 'a2', 'a3', 'a4'])
})

test('removes a waiting task when its signal aborts, and starts the next one', async () => {
  const { run, end, started } = setUp()
  const stop = new AbortController()
  void run('one', 4)
  const large = run('large', 10, 'a', stop.signal)
  void run('two', 4)
  await new Promise(setImmediate)
  stop.abort(new Error('gone'))
  await expect(large).rejects.toThrow('gone')
  await new Promise(setImmediate)
  expect(started).toEqual(['one', 'two'])
  await expect(run('late', 1, 'a', stop.signal)).rejects.toThrow('gone')
  await end('one')
})

test('a workspace whose tasks use half of the size leaves room for others', async () => {
  const { run, end, started } = setUp()
  void run('a1', 6)
  void run('a2', 4)
  void run('b1', 2, 'b')
  await new Promise(setImmediate)
  expect(started).toEqual(['a1', 'b1'])
  await end('a1')
  expect(started).toEqual(['a1', 'b1', 'a2'])
})

test('a small task of a workspace without a running one does not wait for room for the large task of another', async () => {
  const { run, end, started } = setUp()
  void run('a1', 4)
  void run('a2', 9)
  for (const name of ['b1', 'b2']) void run(name, 2, 'b')
  void run('c1', 6, 'c')
  await new Promise(setImmediate)
  expect(started).toEqual(['a1', 'b1'])
  await end('b1')
  expect(started).toEqual(['a1', 'b1', 'b2'])
  await end('a1')
  expect(started).toEqual(['a1', 'b1', 'b2'])
  await end('b2')
  expect(started).toEqual(['a1', 'b1', 'b2', 'a2'])
  await end('a2')
  expect(started.at(-1)).toBe('c1')
})
