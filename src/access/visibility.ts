import type { Visibility } from '../storage/visibility.ts'

/** Every row: row-level access is off, or the caller manages access. The only place that makes a `Visibility`. */
export function everything(): Visibility {
  return { principals: 'all' } as Visibility
}
