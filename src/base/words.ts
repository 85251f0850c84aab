import { stemmer } from 'stemmer'
import { BoundedCache, copyPart } from './bounded-cache.ts'
import { cutUnits } from './cut-units.ts'

/** Maximum length of a term, in UTF-16 units. Longer terms, such as base64 data, are cut. */
export const termLengthMax = 64

/**
 * Maximum number of distinct words in a query. The first words of a longer text are enough to identify its subject.
 */
const queryWordsMax = 256

/** Maximum number of entries of each cache. */
const cacheSizeMax = 1 << 17

const separatorType = 0
const plainType = 1
const upperCaseType = 2

const asciiTypes = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[A-Z]/.test(character)) return upperCaseType
  return /[a-z0-9]/.test(character) ? plainType : separatorType
})

/** A word of a text with its position. `text.slice(start, end)` is its original spelling. */
export interface WordSpan {
  word: string
  start: number
  end: number
}

/**
 * English words that do not indicate a topic. They are removed from queries and from the terms of the built-in
 * embedder. They include the parts of words with an apostrophe, such as `don` and `t` for "don't".
 */
export const stopwords: ReadonlySet<string> = new Set(
  `a about above across after again against all almost also although always am among an and another any are
  aren as at be became because become becomes been away before being below between both but by can cannot could
  couldn d did didn do does doesn doing don done down during each either else etc ever every few for from
  further had hadn has hasn have haven having he hence her here hers herself him himself his how however i
  if in into is isn it its itself just ll m many may me might more most much must my myself neither no nor
  not of off often on once only onto or other our ours ourselves out over own per rather re s same shall she
  should shouldn since so some such t than that the their theirs them themselves then there therefore these
  they this those though through thus to too toward towards under until up upon us ve very was wasn we were
  weren what whatever when where whether which while who whom whose why will with within without would
  wouldn yet you your yours yourself yourselves`.split(/\s+/),
)

const stemCache = new BoundedCache<string, string>(cacheSizeMax)
/** Terms of words; an empty string for a stop word. */
const termCache = new BoundedCache<string, string>(cacheSizeMax)
const foldCache = new BoundedCache<number, string>(cacheSizeMax)
const boundary = ' '

function store<K>(cache: BoundedCache<K, string>, key: K, value: string): string {
  cache.set(key, value)
  return value
}

/**
 * Returns the letters and digits of a non-ASCII character in lowercase and without accents. Returns an empty string for
 * a combining accent, and `boundary` for a character that separates words. The result is a single word even for a
 * character that represents several words: `am` for `㏂`, and `12` for `½`.
 */
function foldCharacter(codePoint: number): string {
  const cached = foldCache.get(codePoint)
  if (cached !== undefined) return cached
  const character = String.fromCodePoint(codePoint)
  const lower = character.normalize('NFKD').toLowerCase().normalize('NFKD')
  const letters = lower.replace(/[^\p{L}\p{N}]+/gu, '').replaceAll('ς', 'σ')
  return store(foldCache, codePoint, letters === '' && !/\p{M}/u.test(character) ? boundary : letters)
}

class WordScanner implements WordSpan {
  word = ''
  start = 0
  end = 0
  readonly #text: string
  #position = 0

  constructor(text: string) {
    this.#text = text
  }

  next(): boolean {
    const text = this.#text
    const length = text.length
    let position = this.#position
    while (position < length) {
      const start = position
      let types = 0
      let code = 0
      for (; position < length; position++) {
        code = text.charCodeAt(position)
        const type = code < 128 ? asciiTypes[code]! : separatorType
        if (type === separatorType) break
        types |= type
      }
      if (position < length && code >= 128) {
        if (this.#scanFoldedWord(start)) return true
        position = this.#position
      } else if (position > start) {
        const word = text.slice(start, position)
        return this.#setWord(types & upperCaseType ? word.toLowerCase() : word, start, position, position + 1)
      } else {
        position++
      }
    }
    this.#position = length
    return false
  }

  /**
   * Reads a word that contains non-ASCII characters, and folds them. If no word starts at the position, skips at least one
   * character and returns false.
   */
  #scanFoldedWord(from: number): boolean {
    const text = this.#text
    let word = ''
    let start = from
    let position = from
    while (position < text.length) {
      const codePoint = text.codePointAt(position)!
      const size = codePoint > 0xffff ? 2 : 1
      const folded = codePoint < 128 ? this.#foldAscii(codePoint) : foldCharacter(codePoint)
      if (folded === boundary) break
      if (word === '') start = position
      word += folded
      position += size
    }
    if (word !== '') return this.#setWord(word, start, position, position)
    this.#position = position === from ? from + (text.codePointAt(from)! > 0xffff ? 2 : 1) : position
    return false
  }

  #foldAscii(code: number): string {
    return asciiTypes[code] === separatorType ? boundary : String.fromCharCode(code).toLowerCase()
  }

  #setWord(word: string, start: number, end: number, position: number): boolean {
    this.word = word
    this.start = start
    this.end = end
    this.#position = position
    return true
  }
}

/** Yields the words that {@link words} returns, with their positions. */
export function* wordSpans(text: string): Generator<WordSpan, void, undefined> {
  const scanner = new WordScanner(text)
  while (scanner.next()) yield { word: scanner.word, start: scanner.start, end: scanner.end }
}

/**
 * Returns the words of a text, in order. A word is a sequence of letters and digits. It is returned in lowercase,
 * without accents, and with compatibility characters replaced.
 */
export function words(text: string): string[] {
  const result: string[] = []
  const scanner = new WordScanner(text)
  while (scanner.next()) result.push(scanner.word)
  return result
}

/**
 * Returns the Porter stem of a lowercase word. A word with non-ASCII characters or digits, or of more than
 * {@link termLengthMax} units, is returned unchanged.
 *
 * @see https://tartarus.org/martin/PorterStemmer/
 */
export function stem(word: string): string {
  const cached = stemCache.get(word)
  if (cached !== undefined) return cached
  if (!hasStem(word)) return word
  const copy = copyPart(word)
  return store(stemCache, copy, stemmer(copy))
}

function hasStem(word: string): boolean {
  return word.length <= termLengthMax && /^[a-z]+$/.test(word)
}

/**
 * Returns the distinct words of a query in lowercase, without stop words unless all words are stop words. Keeps accents
 * and marks, because the index processes them itself.
 */
export function queryWords(text: string): string[] {
  const all = [...new Set(text.toLowerCase().match(/[\p{L}\p{N}\p{M}\p{Co}]+/gu))]
  const meaningful = all.filter(word => !stopwords.has(word))
  return (meaningful.length > 0 ? meaningful : all).slice(0, queryWordsMax)
}

/** Returns the term of a lowercase word; an empty string for a stop word. */
function termOf(word: string): string {
  const cached = termCache.get(word)
  if (cached !== undefined) return cached
  const part = copyPart(cutUnits(word, termLengthMax))
  const term = stopwords.has(word) ? '' : hasStem(part) ? stemmer(part) : part
  return word.length > termLengthMax ? term : store(termCache, part, term)
}

/**
 * Returns the terms of a text, in order and with repetitions. Terms are the stems of the words that are not stop words.
 */
export function terms(text: string): string[] {
  const result: string[] = []
  const scanner = new WordScanner(text)
  while (scanner.next()) {
    const term = termOf(scanner.word)
    if (term !== '') result.push(term)
  }
  return result
}
