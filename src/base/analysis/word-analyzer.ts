import { cutUnits } from '../cut-units.ts'
import { foldAccents, foldGerman, isAscii, lowercase, normalizeText } from './fold.ts'
import type { LoadedLanguage, Stem, StemmedScript } from './languages.ts'

/** Maximum length of a term in UTF-16 units, which is at most 192 bytes in UTF-8. Longer words are cut. */
export const termUnitsMax = 64

const scripts: readonly (readonly [StemmedScript, RegExp])[] = (
  ['Latin', 'Cyrillic', 'Greek', 'Arabic', 'Devanagari', 'Tamil', 'Armenian'] as const
).map(script => [script, new RegExp(String.raw`^\p{sc=${script}}`, 'u')] as const)

/** The terms of a word. */
export interface AnalyzedWord {
  /** Lowercase and without accents, but not stemmed. Empty if the word has only invisible characters. */
  readonly surface: string
  /**
   * Stems without accents. A word with accents can have two: one of the word itself, and one of the word typed without
   * accents. In Turkish, the whole word is also a term.
   */
  readonly terms: readonly string[]
  readonly isStopword: boolean
}

/** Reduces single words to terms by the rules of one language. */
export class WordAnalyzer {
  readonly #language: LoadedLanguage

  constructor(language: LoadedLanguage) {
    this.#language = language
  }

  /** Analyzes a word without separators. */
  analyze(word: string): AnalyzedWord {
    const { code, stopwords } = this.#language
    const lower = cutUnits(lowercase(normalizeText(word), code), termUnitsMax)
    const isGerman = code === 'de'
    const surface = cutUnits(isGerman ? foldGerman(lower) : foldAccents(lower), termUnitsMax)
    const stem = this.#stemFor(lower)
    const found = new Set<string>()
    if (stem && !isGerman) found.add(cutUnits(foldAccents(stem(lower)), termUnitsMax))
    if (!isAscii(lower) || isGerman) found.add(stem ? foldAccents(stem(surface)) : surface)
    // The Turkish stemmer also cuts words that have no ending: `araba` becomes `arap`, but `arabalar` `araba`.
    if (found.size === 0 || code === 'tr') found.add(surface)
    found.delete('')
    return { surface, terms: [...found], isStopword: stopwords.has(lower) || stopwords.has(surface) }
  }

  #stemFor(word: string): Stem | undefined {
    if (!/^[\p{L}\p{M}]+$/u.test(word)) return undefined
    for (const [script, pattern] of scripts) if (pattern.test(word)) return this.#language.stems.get(script)
    return undefined
  }
}
