/**
 * Kinds of characters. A word is a run of `word` characters. A `joiner` can connect two words into a compound. A run of
 * `segmented` characters, which has no spaces between its words, is segmented with a dictionary.
 */
export const characterKinds = { separator: 0, word: 1, joiner: 2, segmented: 3 } as const

const unknown = 255
const bmpSize = 0x1_0000
const astralMemoMax = 1 << 14

const joiners = /^[_\-./\\:@\u2010\u2011]$/u
/** Invisible characters inside words: soft hyphen, joiners, word joiner and byte order mark. */
const invisible = /\u00ad|\u200c|\u200d|\u2060|\ufeff/u
const wordCharacter = /^[\p{L}\p{N}\p{M}\p{Co}]$/u
/** Scripts without spaces between words, and Hangul, in which particles are attached to words. */
const segmentedScript =
  /^[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Khmer}\p{scx=Lao}\p{scx=Myanmar}\p{scx=Hangul}]$/u

const bmpKinds = new Uint8Array(bmpSize).fill(unknown)
const astralKinds = new Map<number, number>()

function classify(codePoint: number): number {
  const character = String.fromCodePoint(codePoint)
  if (joiners.test(character)) return characterKinds.joiner
  if (invisible.test(character)) return characterKinds.word
  if (!wordCharacter.test(character)) return characterKinds.separator
  // Digits, and combining marks that several scripts share, belong to words of any script. Japanese voicing marks belong
  // to segmented text only.
  if (/^[\p{sc=Inherited}\p{Nd}]$/u.test(character) && !/[\u3099\u309a]/.test(character))
    return characterKinds.word
  return segmentedScript.test(character) ? characterKinds.segmented : characterKinds.word
}

/** Returns the kind of a UTF-16 unit that is not part of a surrogate pair. */
export function kindOfUnit(unit: number): number {
  const known = bmpKinds[unit]!
  if (known !== unknown) return known
  const kind = classify(unit)
  bmpKinds[unit] = kind
  return kind
}

/** Returns the kind of the character that starts at an index of a text. */
export function kindAt(text: string, index: number): number {
  const codePoint = text.codePointAt(index)!
  if (codePoint < bmpSize) return kindOfUnit(codePoint)
  const known = astralKinds.get(codePoint)
  if (known !== undefined) return known
  const kind = classify(codePoint)
  if (astralKinds.size >= astralMemoMax) astralKinds.clear()
  astralKinds.set(codePoint, kind)
  return kind
}

/** Returns the number of UTF-16 units of the character at an index of a text: 1 or 2. */
export function sizeAt(text: string, index: number): number {
  const unit = text.charCodeAt(index)
  return unit >= 0xd800 && unit < 0xdc00 && text.codePointAt(index)! >= bmpSize ? 2 : 1
}
