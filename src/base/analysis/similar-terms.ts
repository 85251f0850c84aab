import { compareCodePoints } from '../compare-code-points.ts'
import type { Tokenizer } from './token.ts'

/** Minimum number of letters of a word for which terms at a distance of 1 and of 2 edits are accepted. */
const oneEditLettersMin = 4
const twoEditsLettersMin = 8
/** Minimum number of letters of a similar term. An edit of a short stem results in an unrelated word. */
const termLettersMin = 3
/** Maximum number of terms that are compared with a word, and of pages of terms that are read for it. */
const comparedMax = 20_000
const pagesMax = 1_000
const pageSize = 64
/** Maximum number of different first letters that are tried. */
const initialsMax = 400
/** Number of letters at the end of a word. Each possible edit of them is tried before the word is stemmed. */
const suffixLetters = 5

const alphabets: readonly (readonly [RegExp, string])[] = [
  [/^[a-z]+$/, 'abcdefghijklmnopqrstuvwxyz'],
  [/^[а-я]+$/, 'абвгдежзийклмнопрстуфхцчшщъыьэюя'],
]

/** A term of a posting store with the number of texts that hold it. */
export interface TermFrequency {
  readonly term: string
  readonly count: number
}

/** Sorted terms of a posting store. */
export interface TermList {
  /** Returns terms from `first` on, in order of code points (which is that of UTF-8 bytes), at most `limit`. */
  from(first: string, limit: number): readonly string[]
  /** Returns the number of texts that contain a term, and that the caller may see. Takes longer than `from`. */
  count(term: string): number
}

/** A term that is similar to a word. */
export interface SimilarTerm extends TermFrequency {
  /** Number of edits: letters inserted, deleted, replaced, or swapped with their neighbor. */
  readonly distance: number
}

/**
 * Returns terms for a word without matches, best first: by distance, then by count, then in order of code points. Accepts
 * a distance of 1 edit from words of 4 to 7 letters, and of 2 edits from longer words. Looks for terms with another first
 * letter only if it finds no others, and only at a distance of 1. Words with digits have no similar terms. Accepts no stop
 * words, and no terms of fewer than 3 letters. Compares at most 20,000 terms.
 */
export function similarTerms(tokenizer: Tokenizer, word: string, list: TermList, limit = 5): SimilarTerm[] {
  const letters = [...word]
  if (letters.length < oneEditLettersMin || !isWord(word)) return []
  const editsMax = letters.length >= twoEditsLettersMin ? 2 : 1
  const found = new Map<string, SimilarTerm>()
  const add = (term: string, distance: number) => {
    if ([...term].length < termLettersMin || isStopword(tokenizer, term)) return
    const known = found.get(term)
    const count = known?.count ?? list.count(term)
    if (count > 0 && (!known || known.distance > distance)) found.set(term, { term, count, distance })
  }
  for (const term of findTerms(list, editedEndings(tokenizer, word))) add(term, 1)
  const budget = { compared: comparedMax, pages: pagesMax }
  for (const term of tokenizer.wordTerms(word)) {
    const [initial] = term
    if (initial === undefined) continue
    const after = successor(initial)
    scanTerms(list, term, editsMax, initial, after, budget, add)
    if (found.size > 0) continue
    for (const edited of findTerms(list, editedInitials(list, term))) if (isWord(edited)) add(edited, 1)
  }
  return [...found.values()]
    .sort((a, b) => a.distance - b.distance || b.count - a.count || compareCodePoints(a.term, b.term))
    .slice(0, limit)
}

function isWord(text: string): boolean {
  return /^[\p{L}\p{M}]+$/u.test(text)
}

function isStopword(tokenizer: Tokenizer, term: string): boolean {
  let found = false
  tokenizer.scan(term, ({ tokens }) => {
    found ||= tokens.length === 1 && tokens[0]!.isStopword && tokens[0]!.term === term
  })
  return found
}

/** Returns the first text after all texts that start with a prefix, or `undefined` if no text follows them. */
function successor(prefix: string): string | undefined {
  const points = [...prefix].map(point => point.codePointAt(0)!)
  while (points.length > 0) {
    const last = points.pop()!
    if (last === 0x10_ffff) continue
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1)
  }
  return undefined
}

/**
 * Returns the terms of all words that are one edit of the ending away from a word. A wrong letter in an ending changes the
 * stem: `runing` has the stem `rune`, so a comparison of stems does not find `run`.
 */
function editedEndings(tokenizer: Tokenizer, word: string): Set<string> {
  const letters = [...word]
  const alphabet = alphabets.find(([pattern]) => pattern.test(word))?.[1] ?? ''
  const terms = new Set<string>()
  const add = (edited: string[]) => {
    for (const term of tokenizer.wordTerms(edited.join(''))) terms.add(term)
  }
  for (let at = Math.max(0, letters.length - suffixLetters); at <= letters.length; at++) {
    if (at < letters.length) add(letters.toSpliced(at, 1))
    if (at < letters.length - 1) add(letters.toSpliced(at, 2, letters[at + 1]!, letters[at]!))
    for (const letter of alphabet) {
      add(letters.toSpliced(at, 0, letter))
      if (at < letters.length) add(letters.toSpliced(at, 1, letter))
    }
  }
  return terms
}

/** Returns the strings that start with another letter than a term, one of the list, and are one edit away from the term. */
function editedInitials(list: TermList, term: string): Set<string> {
  const [initial = '', second = '', ...others] = term
  const rest = `${second}${others.join('')}`
  const edited = new Set([rest, `${second}${initial}${others.join('')}`])
  for (const letter of initialLetters(list)) edited.add(`${letter}${term}`).add(`${letter}${rest}`)
  return new Set([...edited].filter(text => text !== '' && !text.startsWith(initial)))
}

/** Yields the first letters of the terms of a list, in order. */
function* initialLetters(list: TermList): Generator<string, void, undefined> {
  let first: string | undefined = ''
  for (let letters = 0; first !== undefined && letters < initialsMax; letters++) {
    const [initial] = list.from(first, 1)[0] ?? ''
    if (initial === undefined) return
    yield initial
    first = successor(initial)
  }
}

/** Yields the given terms that a list contains. Terms with a common prefix are often on one page. */
function* findTerms(list: TermList, terms: Iterable<string>): Generator<string, void, undefined> {
  let page: ReadonlySet<string> = new Set()
  let last: string | undefined
  for (const term of [...terms].sort(compareCodePoints)) {
    if (last === undefined || compareCodePoints(last, term) < 0) {
      const read = list.from(term, pageSize)
      page = new Set(read)
      last = read.at(-1)
    }
    if (page.has(term)) yield term
  }
}

/**
 * Reports the terms of a range that are at most `editsMax` edits away (optimal string alignment distance). If no term with
 * a prefix can be near enough, continues with the first term after that prefix.
 */
function scanTerms(
  list: TermList,
  word: string,
  editsMax: number,
  start: string,
  end: string | undefined,
  budget: { compared: number; pages: number },
  report: (term: string, distance: number) => void,
): void {
  const target = [...word]
  const rows: Int32Array[] = [Int32Array.from({ length: target.length + 1 }, (_, at) => at)]
  let prefix: string[] = []
  /** Prefix whose terms are all too far away; empty if unknown. */
  let farPrefix = ''
  let first: string | undefined = start
  while (first !== undefined && budget.pages-- > 0) {
    const page: readonly string[] = list.from(first, pageSize)
    for (const term of page) {
      if (end !== undefined && compareCodePoints(term, end) >= 0) return
      if (farPrefix !== '' && term.startsWith(farPrefix)) continue
      if (budget.compared-- <= 0) return
      farPrefix = ''
      const letters = [...term]
      let same = 0
      while (same < prefix.length && same < letters.length && prefix[same] === letters[same]) same++
      let length = same
      for (; length < letters.length; length++) {
        if (!extendRow(rows, letters, length, target, editsMax)) break
      }
      prefix = letters.slice(0, length)
      if (length < letters.length) farPrefix = letters.slice(0, length + 1).join('')
      else if (rows[length]![target.length]! <= editsMax && isWord(term))
        report(term, rows[length]![target.length]!)
    }
    const last = page.at(-1)
    if (last === undefined || page.length < pageSize) return
    first = farPrefix !== '' && last.startsWith(farPrefix) ? successor(farPrefix) : `${last}\0`
  }
}

/**
 * Computes the row of the distance matrix for a letter of a term. Returns true if a term that starts with the letters up to
 * this one can be at most `editsMax` edits away.
 */
function extendRow(
  rows: Int32Array[],
  letters: readonly string[],
  at: number,
  target: readonly string[],
  editsMax: number,
): boolean {
  const row = rows[at + 1] ?? new Int32Array(target.length + 1)
  rows[at + 1] = row
  const before = rows[at]!
  row[0] = at + 1
  let least = row[0]
  for (let i = 1; i <= target.length; i++) {
    let best = Math.min(
      before[i]! + 1,
      row[i - 1]! + 1,
      before[i - 1]! + (letters[at] === target[i - 1] ? 0 : 1),
    )
    if (at > 0 && i > 1 && letters[at] === target[i - 2] && letters[at - 1] === target[i - 1])
      best = Math.min(best, rows[at - 1]![i - 2]! + 1)
    row[i] = best
    least = Math.min(least, best)
  }
  // A swap of this letter with the next one would continue from the previous row, at a cost of 1.
  return Math.min(least, Math.min(...before) + 1) <= editsMax
}
