/** Lists with more elements are searched with a set. */
const scannedMax = 100
/** Sets of the elements of long lists, which are kept as long as the lists. */
const elementSets = new WeakMap<readonly unknown[], ReadonlySet<unknown>>()

/**
 * Returns true if a list contains a value. After the first call for a long list, which must not change, the time does not
 * depend on its length.
 */
export function includesValue(list: readonly unknown[], value: unknown): boolean {
  if (list.length <= scannedMax) return list.includes(value)
  const elements = elementSets.get(list) ?? new Set(list)
  elementSets.set(list, elements)
  return elements.has(value)
}
