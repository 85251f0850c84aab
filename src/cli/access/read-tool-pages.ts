/** A page of an access tool: items, and facts about the whole answer that each page repeats. */
interface ToolPage<Item> {
  readonly items: Item[]
  readonly nextCursor: string | null
}

/** Reads all pages, and returns their items and the facts of the last page. */
export async function readToolPages<Item, Page extends ToolPage<Item>>(
  read: (cursor: string | undefined) => Promise<Page & ToolPage<Item>>,
): Promise<{ items: Item[]; facts: Omit<Page, keyof ToolPage<Item>> }> {
  const all: Item[] = []
  let cursor: string | undefined
  for (;;) {
    const { items, nextCursor, ...facts } = await read(cursor)
    all.push(...items)
    if (nextCursor === null || nextCursor === cursor) return { items: all, facts }
    cursor = nextCursor
  }
}
