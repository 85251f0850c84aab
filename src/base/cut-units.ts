/** Cuts a text to a number of UTF-16 units without splitting a surrogate pair. */
export function cutUnits(text: string, unitsMax: number): string {
  if (text.length <= unitsMax) return text
  const splitsPair = /[\ud800-\udbff]/.test(text.charAt(unitsMax - 1))
  return text.slice(0, splitsPair ? unitsMax - 1 : unitsMax)
}
