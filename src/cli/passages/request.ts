/** How `--mode` maps onto a search request. @see contract: lexical alone */
export const modes = {
  hybrid: { hybrid: true },
  lexical: { hybrid: true, lexicalWeight: 1 },
  vector: { hybrid: false },
} as const
