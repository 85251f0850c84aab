import { beforeAll, describe, expect, test } from 'vitest'
import type { Filter } from '../../src/storage/filter.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { all, createCollection, key, record } from '../storage/content-data.ts'

const rows = 2_000
const payloadOf = (row: number) => ({
  ...Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`key${at}`, row + at])),
  tags: ['odd', 'even'].filter((_, at) => row % 2 !== at),
})
const equals = (name: string, value: number): Filter => ({ kind: 'in', key: name, values: [value] })
const anyOf = (conditions: number): Filter => ({
  kind: 'or',
  parts: [equals('key0', 7), ...Array.from({ length: conditions - 1 }, (_, at) => equals(`absent${at}`, at))],
})

describe('expensive filters', () => {
  let found: (filter: Filter) => Promise<number[]>

  beforeAll(async () => {
    const { content, close } = await openEmbeddedStore({ path: ':memory:' })
    const records = Array.from({ length: rows }, (_, row) => ({
      ...record(`r${row}`),
      payload: payloadOf(row),
    }))
    await content.write([createCollection(), { op: 'upsert', ...key, generation: 0, records }], [])
    found = async filter => {
      const query = { vector: Float32Array.of(1, 0), limit: rows, visibility: all, filter }
      return (await content.nearest(key, query)).map(hit => hit.record).sort((a, b) => a - b)
    }
    return close
  })

  test('find the same records for any number of conditions', async () => {
    const [only] = await found(equals('key0', 7))
    for (const conditions of [1, 4, 5, 300]) expect(await found(anyOf(conditions))).toEqual([only])
    const tagged: Filter = { kind: 'all', key: 'tags', values: ['odd'] }
    const odd = await found(tagged)
    expect(odd).toHaveLength(rows / 2)
    const none: Filter = { kind: 'not', operand: anyOf(300) }
    expect(await found({ kind: 'and', parts: [tagged, none] })).toEqual(odd.filter(one => one !== only))
  })

  test('with nine hundred conditions take less than a hundred times as long as one condition', async () => {
    /** Returns the shortest of five times, because other processes also use the machine. */
    const msOf = async (filter: Filter) => {
      const all: number[] = []
      for (let time = 0; time < 5; time++) {
        const began = performance.now()
        await found(filter)
        all.push(performance.now() - began)
      }
      return Math.min(...all)
    }
    const one = await msOf(equals('key1', 2))
    expect(await msOf(anyOf(900))).toBeLessThan(100 * one)
  })
})
