import { isAscii, normalizeText } from './fold.ts'
import type { TokenSequence } from './token.ts'
import { termUnitsMax, type WordAnalyzer } from './word-analyzer.ts'

/** Joiners in the order in which compounds are split at them: `path/file.name-part` at `/`, then at `.`, then at `-`. */
const joinerLevels = [/[/\\:@]+/, /\.+/, /[_\-\u2010\u2011]+/]
const anyJoiner = /[/\\:@._\-\u2010\u2011]+/gu
const version = /^[vV]?(\d+(?:\.\d+)+)(?=$|[-_])/
const mixedCase = /\p{Ll}\p{Lu}|\p{Lu}\p{Lu}\p{Ll}/u
const caseBoundary = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u
/** A plural of an acronym, such as `PDFs`. */
const pluralAcronym = /^\p{Lu}+s$/u
/** Maximum number of words in a mixed-case name. A word with more changes of case is encoded data, and is not split. */
const casePartsMax = 8
const numberedName = /^(\p{L}{2,})\p{N}+$/u
const notInCompounds = /[^\p{L}\p{N}\p{M}\p{Co}/\\:@._\-\u2010\u2011]+/gu
const plainWord = /^[A-Za-z]?[a-z]*$/
const symbolName = /^(\p{L}{1,2})(\+\+|#)$/u

interface MutableToken {
  term: string
  at: number
  span: number
  isStopword: boolean
  surface?: string
}

/**
 * Splits compounds, such as identifiers, paths, versions and words with hyphens, into terms: each word, and each
 * group of words without its joiners. `src/userName.ts` is `src`, `user`, `name`, `ts`, `username`,
 * `usernamets` and `srcusernamets`. Joiners between digits become a dot: `2024-01-15` is `2024.01.15`.
 */
export class CompoundAnalyzer {
  readonly #words: WordAnalyzer

  constructor(words: WordAnalyzer) {
    this.#words = words
  }

  /** Analyzes a compound: words with a joiner, `::` or `__` between them. */
  analyze(compound: string): TokenSequence {
    const tokens: MutableToken[] = []
    if (plainWord.test(compound))
      return { tokens, positions: this.#addWord(tokens, compound, 0, 1), words: 1 }
    const symbol = symbolName.exec(compound)
    if (symbol) {
      this.#addWord(tokens, symbol[1]!, 0, 1)
      const name = compound.toLowerCase()
      tokens.push({ term: name, at: 0, span: 1, isStopword: false, surface: name })
      for (const token of tokens) token.isStopword = false
      return { tokens, positions: 1, words: 1 }
    }
    const positions = this.#split(tokens, normalizeCompound(compound), 0, 0)
    tokens.sort((a, b) => a.at - b.at)
    return { tokens, positions, words: positions }
  }

  /** Adds the tokens of a part that starts at position `at`. Returns the number of positions that it takes. */
  #split(tokens: MutableToken[], part: string, level: number, at: number): number {
    if (level > joinerLevels.length) return this.#addWord(tokens, part, at, 1)
    const pieces =
      level === joinerLevels.length ? splitCase(part) : part.split(joinerLevels[level]!).filter(Boolean)
    let positions = 0
    for (const piece of pieces) positions += this.#split(tokens, piece, level + 1, at + positions)
    if (positions > 1 && pieces.length > 1) {
      this.#addWhole(tokens, part, at, positions)
      if (level === 1 || level === 2) addVersion(tokens, part, at)
    }
    return positions
  }

  #addWord(tokens: MutableToken[], word: string, at: number, span: number): number {
    const { surface, terms, isStopword } = this.#words.analyze(word)
    for (const term of terms) tokens.push({ term, at, span, isStopword, surface })
    const name = numberedName.exec(word)
    if (name)
      for (const term of this.#words.analyze(name[1]!).terms)
        tokens.push({ term, at, span, isStopword: false })
    return terms.length > 0 ? 1 : 0
  }

  #addWhole(tokens: MutableToken[], part: string, at: number, span: number): void {
    const whole = part.replace(anyJoiner, (joiner, from: number) =>
      isDigit(part, from - 1) && isDigit(part, from + joiner.length) ? '.' : '',
    )
    if (whole.length > termUnitsMax) return
    const { surface, terms } = this.#words.analyze(whole)
    for (const term of terms) tokens.push({ term, at, span, isStopword: false, surface })
  }
}

/** Returns a compound in compatibility form, without the separators in it: `½` becomes `1⁄2` and then `12`. */
function normalizeCompound(compound: string): string {
  return isAscii(compound) ? compound : normalizeText(compound).replace(notInCompounds, '')
}

/** Adds the tokens of a part that starts with a version: `v1.2-beta` has the tokens `1.2` and `v1.2`. */
function addVersion(tokens: MutableToken[], part: string, at: number): void {
  const found = version.exec(part)
  if (!found) return
  const number = found[1]!
  const names = found[0] === number ? [number] : [number, `v${number}`]
  const span = number.split('.').length
  for (const term of names)
    if (term.length <= termUnitsMax && !tokens.some(token => token.term === term && token.at === at))
      tokens.push({ term, at, span, isStopword: false, surface: term })
}

function isDigit(text: string, at: number): boolean {
  return /^\d$/.test(text.charAt(at))
}

function splitCase(word: string): string[] {
  if (!mixedCase.test(word) || pluralAcronym.test(word)) return [word]
  const parts = word.split(caseBoundary)
  return parts.length <= casePartsMax ? parts : [word]
}
