import type { Check, Examined } from './local.ts'

/** Where a store lies, and of which version it is. */
export function storeState({ path, schema }: Examined): string {
  if (path === undefined) return 'in memory'
  if (!schema) return `${path}, not made yet`
  const isOld = schema.found !== schema.known ? `; ${schema.known} once it is opened` : ''
  return `${path}, schema ${schema.found}${isOld}`
}

/** A finding: how often, what, and some of it. */
export function checkLine({ check, count, examples }: Check): string {
  return `${count}\t${check}\t${examples.join(', ')}`
}
