import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BodyMemory, smallBodyBytes } from '../../src/http/body-memory.ts'

const budget = { totalBytes: 8_000_000, perCallerBytes: 4_000_000 }
const overloaded = expect.objectContaining({
  code: 'overloaded',
  status: 503,
  facts: expect.objectContaining({ headers: { 'retry-after': '1' } }),
})

function thrownBy(act: () => void): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  return undefined
}

const verified = (caller: string) => ({ caller, isVerified: true })

describe('the memory for request bodies', () => {
  test('limits each caller, leaves the rest to others, and can be reused after a release', () => {
    const memory = new BodyMemory(budget)
    const [first, second, third] = ['a', 'a', 'b'].map(caller => memory.reserve(verified(caller)))
    first!.resize(3_000_000)
    expect(thrownBy(() => second!.resize(1_500_000))).toEqual(overloaded)
    third!.resize(4_000_000)
    expect(thrownBy(() => memory.reserve(verified('c')).resize(1_500_000))).toEqual(overloaded)
    first!.release()
    second!.resize(1_500_000)
  })

  test('a rejected resize keeps the previous reservation', () => {
    const memory = new BodyMemory(budget)
    const [grown, other] = [memory.reserve(verified('a')), memory.reserve(verified('a'))]
    grown.resize(2_000_000)
    other.resize(2_000_000)
    expect(thrownBy(() => grown.resize(2_000_001))).toEqual(overloaded)
    grown.release()
    other.resize(4_000_000)
  })

  test('accepts small bodies after large ones used the budget, and keeps anonymous callers from using the share of verified ones', () => {
    const memory = new BodyMemory(budget)
    for (const caller of ['a', 'b']) memory.reserve(verified(caller)).resize(4_000_000)
    memory.reserve(verified('a')).resize(smallBodyBytes)
    for (let address = 0; address < 3; address++)
      for (let stalled = 0; stalled < 100; stalled++)
        thrownBy(() =>
          memory.reserve({ caller: `anonymous ${address}`, isVerified: false }).resize(smallBodyBytes),
        )
    expect(
      thrownBy(() => memory.reserve({ caller: 'anonymous 9', isVerified: false }).resize(smallBodyBytes)),
    ).toEqual(overloaded)
    memory.reserve(verified('c')).resize(smallBodyBytes)
  })

  test('never exceeds its limits, and is free again after all reservations are released', () => {
    const step = fc.record({
      hold: fc.nat(5),
      act: fc.constantFrom('resize', 'release'),
      bytes: fc.nat(5_000_000),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), steps => {
        const memory = new BodyMemory(budget)
        const callers = ['a', 'a', 'b', 'b', 'c', 'c']
        const holds = callers.map(caller => memory.reserve(verified(caller)))
        const held = callers.map(() => 0)
        for (const { hold, act, bytes } of steps) {
          if (act === 'release') holds[hold]!.release()
          const refused = act === 'resize' && thrownBy(() => holds[hold]!.resize(bytes)) !== undefined
          if (!refused) held[hold] = act === 'release' ? 0 : bytes
        }
        const large = held.map(bytes => (bytes > smallBodyBytes ? bytes : 0))
        const sumOf = (caller?: string) =>
          large.filter((_, at) => caller === undefined || callers[at] === caller).reduce((a, b) => a + b)
        expect(sumOf()).toBeLessThanOrEqual(budget.totalBytes)
        for (const caller of 'abc') expect(sumOf(caller)).toBeLessThanOrEqual(budget.perCallerBytes)
        for (const hold of holds) hold.release()
        memory.reserve(verified('a')).resize(budget.perCallerBytes)
        memory.reserve(verified('b')).resize(budget.perCallerBytes)
      }),
    )
  })
})
