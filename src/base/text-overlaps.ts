/**
 * Returns the possible lengths of an overlap between the end of a text and the start of the next one, longest first.
 * An overlap is shorter than either text.
 *
 * @see Knuth, Morris, Pratt, "Fast pattern matching in strings", 1977
 */
export function overlapsOf(text: string, next: string): number[] {
  const longest = Math.min(text.length, next.length) - 1
  if (longest < 1) return []
  const head = next.slice(0, longest)
  const borders = bordersOf(head)
  const lengths: number[] = []
  for (
    let length = longestMatch(text.slice(-longest), head, borders);
    length > 0;
    length = borders[length - 1]!
  )
    lengths.push(length)
  return lengths
}

/** Returns, for each prefix of a text, the length of its longest proper prefix that is also a suffix. */
function bordersOf(text: string): number[] {
  const borders = [0]
  for (let at = 1, length = 0; at < text.length; at++) {
    length = extendMatch(length, text[at]!, text, borders)
    borders.push(length)
  }
  return borders
}

/** Returns the length of the longest prefix of `head` that is a suffix of `text`, which is not longer than `head`. */
function longestMatch(text: string, head: string, borders: readonly number[]): number {
  let length = 0
  for (let at = 0; at < text.length; at++) length = extendMatch(length, text[at]!, head, borders)
  return length
}

/** Extends a match with a prefix of `head` by one UTF-16 code unit, and returns the length of the longest match. */
function extendMatch(length: number, codeUnit: string, head: string, borders: readonly number[]): number {
  let matched = length
  while (matched > 0 && head[matched] !== codeUnit) matched = borders[matched - 1]!
  return head[matched] === codeUnit ? matched + 1 : 0
}
