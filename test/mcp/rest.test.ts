import { expect, test } from 'vitest'
import type { Caller } from '../../src/access/caller.ts'
import { messages } from '../../src/contract/conversations.ts'
import { Rest } from '../../src/mcp/rest.ts'

test('a list of long items is refused before it fills the memory', async () => {
  const rest = new Rest('w', {} as Caller, { note() {} })
  let pages = 0
  const list = () => {
    pages++
    const item = { content: 'x'.repeat(12_000_000) }
    return { status: 200 as const, body: { items: [item], nextCursor: 'more' } as never }
  }
  await expect(rest.all(messages.list, list)).rejects.toMatchObject({ code: 'payload_too_large' })
  expect(pages).toBe(3)
})
