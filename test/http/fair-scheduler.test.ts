import { expect, test } from 'vitest'
import { FairScheduler, type WorkOwner } from '../../src/http/fair-scheduler.ts'

const ownerAt = (address: string, credential = ''): WorkOwner => ({ address, credential })

/** Runs requests in the given order, in one turn of the event loop, and returns the order in which they start. */
async function startsOf(requests: readonly [name: string, WorkOwner][]): Promise<string[]> {
  const turns = new FairScheduler(8, () => 0)
  const order: string[] = []
  for (const [name, each] of requests) turns.run(each, () => order.push(name))
  await expect.poll(() => order.length).toBe(requests.length)
  return order
}

const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value)

test('starts a few requests in order, in the same turn of the event loop', () => {
  const turns = new FairScheduler(8, () => 0)
  const order: number[] = []
  for (let at = 0; at < 5; at++) turns.run(ownerAt('192.0.2.1'), () => order.push(at))
  expect(order).toEqual([0, 1, 2, 3, 4])
})

test('starts a request of another address soon after a flood began', async () => {
  const flood = Array.from(
    { length: 500 },
    (_, at) => ['flood', ownerAt('192.0.2.1', `key ${at}`)] as [string, WorkOwner],
  )
  const order = await startsOf([...flood, ['other', ownerAt('192.0.2.2')]])
  expect(order.indexOf('other')).toBeLessThan(16)
})

test('starts a request with another credential of the same address soon after a flood began', async () => {
  const flood = times(500, ['flood', ownerAt('192.0.2.1', 'key a')] as const)
  const other = ['other', ownerAt('192.0.2.1', 'key b')] as const
  const order = await startsOf([...flood, other].map(([name, each]) => [name, each]))
  expect(order.indexOf('other')).toBeLessThan(16)
})

test('spreads a flood over several turns of the event loop', async () => {
  const turns = new FairScheduler(8, () => 0)
  let [started, most] = [0, 0]
  for (let at = 0; at < 500; at++) turns.run(ownerAt('192.0.2.1'), () => started++)
  for (let before = started; started < 500; before = started) {
    await new Promise(resolve => setImmediate(resolve))
    most = Math.max(most, started - before)
  }
  expect(most).toBeLessThan(50)
})

test('inserts short turns between long ones while connections arrive', async () => {
  let accepted = 0
  const turns = new FairScheduler(4, () => accepted++)
  let started = 0
  const work = async () => {
    started++
    await undefined
    const until = performance.now() + 2
    while (performance.now() < until);
  }
  for (let at = 0; at < 40; at++) turns.run(ownerAt('192.0.2.1'), () => void work())
  let [long, short] = [0, 0]
  for (let before = started; started < 40; before = started) {
    await new Promise(resolve => setImmediate(resolve))
    if (started > before) long++
    else short++
  }
  expect(short).toBeGreaterThan(10 * (long - 1))
})

test('starts no further work in a turn of the event loop that has taken long', async () => {
  const turns = new FairScheduler(8, () => 0)
  let started = 0
  const work = () => {
    started++
    const until = performance.now() + 5
    while (performance.now() < until);
  }
  for (let at = 0; at < 20; at++) turns.run(ownerAt('192.0.2.1'), work)
  let most = started
  for (let before = started; started < 20; before = started) {
    await new Promise(resolve => setImmediate(resolve))
    most = Math.max(most, started - before)
  }
  expect(most).toBeLessThan(3)
})
