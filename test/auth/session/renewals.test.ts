import { describe, expect, test } from 'vitest'
import { MemoryRenewals } from '../../../src/auth/session/shared-renewals.ts'
import { TestClock } from '../../harness/runtime.ts'

interface Outcome {
  readonly key: string
  readonly lifetimeSeconds?: number
}

function createRenewals() {
  const clock = new TestClock()
  const renewals = new MemoryRenewals<Outcome>({
    clock,
    keyOf: ({ key }) => key,
    lifetimeSeconds: outcome => outcome.lifetimeSeconds,
  })
  const renewed: string[] = []
  const renew = (key: string, outcome: Outcome) =>
    renewals.once(key, async () => {
      renewed.push(key)
      return outcome
    })
  return { clock, renewals, asked: renewed, renew }
}

describe('shared renewals', () => {
  test('return one result to concurrent requests', async () => {
    const { renewals } = createRenewals()
    let runs = 0
    const renew = async () => {
      runs++
      return { key: 'b' }
    }
    const [one, other] = await Promise.all([renewals.once('a', renew), renewals.once('a', renew)])
    expect(one).toBe(other)
    expect(runs).toBe(1)
  })

  test('return the result for 30 seconds', async () => {
    const { clock, asked, renew } = createRenewals()
    const outcome = await renew('a', { key: 'b' })
    clock.advance(30_000)
    expect(await renew('a', { key: 'c' })).toBe(outcome)
    clock.advance(1)
    expect(await renew('a', { key: 'd' })).toEqual({ key: 'd' })
    expect(asked).toEqual(['a', 'a'])
  })

  test('keep a result only for its lifetime, and do not keep an expired one', async () => {
    const { clock, asked, renew } = createRenewals()
    await renew('a', { key: 'b', lifetimeSeconds: 10 })
    clock.advance(10_000)
    await renew('a', { key: 'x' })
    clock.advance(1)
    await renew('a', { key: 'c', lifetimeSeconds: 0 })
    await renew('a', { key: 'd' })
    expect(asked).toEqual(['a', 'a', 'a'])
  })

  test('return the latest result of a chain, or wait for the pending one', async () => {
    const { renewals, renew } = createRenewals()
    await renew('a', { key: 'b' })
    const last = await renew('b', { key: 'c' })
    expect(await renew('a', { key: 'x' })).toBe(last)
    let finish = (_: Outcome) => {}
    const running = renewals.once('c', () => new Promise(resolve => (finish = resolve)))
    const late = renew('a', { key: 'x' })
    finish({ key: 'd' })
    expect(await late).toBe(await running)
  })

  test('report a failure to all waiting requests, and do not keep it', async () => {
    const { renewals, renew } = createRenewals()
    const fail = () => Promise.reject(new Error('no'))
    const both = await Promise.allSettled([renewals.once('a', fail), renewals.once('a', fail)])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await renew('a', { key: 'b' })).toEqual({ key: 'b' })
  })

  test('do not keep a result with an unchanged key', async () => {
    const { asked, renew } = createRenewals()
    await renew('a', { key: 'a' })
    await renew('a', { key: 'a' })
    expect(asked).toEqual(['a', 'a'])
  })

  test('end at a cycle of results', async () => {
    const { asked, renew } = createRenewals()
    await Promise.all([renew('a', { key: 'b' }), renew('b', { key: 'a' })])
    expect(await renew('a', { key: 'c' })).toEqual(
      expect.objectContaining({ key: expect.stringMatching(/[ab]/) }),
    )
    expect(asked).toEqual(['a', 'b'])
  })
})
