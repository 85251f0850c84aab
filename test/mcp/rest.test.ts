import { expect, test } from 'vitest'
import type { Caller } from '../../src/access/caller.ts'
import { messages } from '../../src/contract/conversations.ts'
import { RouteCaller } from '../../src/mcp/route-caller.ts'

/** A list of items of equal length that records requested page sizes. */
function longList(chars: number) {
  const asked: number[] = []
  const list = ({ query }: { query: { limit: number } }) => {
    asked.push(query.limit)
    const items = Array.from({ length: query.limit }, () => ({ content: 'x'.repeat(chars) }))
    return { status: 200 as const, body: { items, nextCursor: 'more' } as never }
  }
  const rest = new RouteCaller('w', {} as Caller, { note() {} })
  const page = (limit: number) => rest.page(messages.list, list, { limit }, ({ content }) => content)
  return { asked, page }
}

test('a page has fewer items if they are long', async () => {
  const { asked, page } = longList(30_000)
  expect((await page(20)).items).toHaveLength(3)
  expect(asked).toEqual([20, 10, 5, 3])
})

test('an item that is longer than a page is returned alone and complete', async () => {
  const { page } = longList(300_000)
  expect((await page(4)).items).toEqual(['x'.repeat(300_000)])
})
