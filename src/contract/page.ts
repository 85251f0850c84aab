import { z } from 'zod'
import { limits } from './limits.ts'

/** Returns the schema of the query parameter `limit`: an integer from 1 to `max`. */
export function limitParameter(max: number, fallback: number) {
  return z.coerce
    .number<string | number>()
    .int()
    .min(1)
    .max(max)
    .default(fallback)
    .meta({ description: 'maximum number of items in the response' })
}

/** Query parameters of all lists. */
export const pageQuery = z.object({
  limit: limitParameter(limits.pageMax, limits.pageDefault),
  cursor: z.string().min(1).optional().meta({ description: '`nextCursor` of the previous page' }),
})

export type PageQuery = z.output<typeof pageQuery>

/** Returns the response schema of a list that is read page by page. */
export function pageOfItems<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() })
}
