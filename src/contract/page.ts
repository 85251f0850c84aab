import { z } from 'zod'
import { limits } from './limits.ts'

/** Returns a schema for a whole number in a query string, from 1 to a maximum. */
export function countQuery(max: number, fallback: number) {
  return z.coerce
    .number<string | number>()
    .int()
    .min(1)
    .max(max)
    .default(fallback)
    .meta({ description: 'maximum number of items' })
}

/** Query parameters of all lists. */
export const pageQuery = z.object({
  limit: countQuery(limits.pageMax, limits.pageDefault),
  cursor: z.string().min(1).optional().meta({ description: '`nextCursor` of the previous page' }),
})

export type PageQuery = z.output<typeof pageQuery>

export function pageOfItems<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() })
}
