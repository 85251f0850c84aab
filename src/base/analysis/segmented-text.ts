import { cutUnits } from '../cut-units.ts'
import { normalizeText } from './fold.ts'
import type { LoadedLanguage } from './languages.ts'
import type { Token, TokenSequence } from './token.ts'
import { termUnitsMax } from './word-analyzer.ts'

/** Prefix of the terms for single characters and bigrams. No word starts with it. */
export const characterTermPrefix = '~'

const character = /\P{M}\p{M}*|\p{M}+/gu
const han = /^\p{sc=Han}/u
/** A long vowel at the end of a Japanese loanword, which is optional: サーバー, サーバ. */
const finalLongVowel = /^(\p{sc=Katakana}[\p{sc=Katakana}ー]{2,})ー$/u

/**
 * Splits text in scripts without spaces into the words of a dictionary, and into bigrams of characters. The bigrams find a
 * word even if the dictionary splits the text and the query differently. A single Chinese character is also a term.
 */
export class SegmentedTextAnalyzer {
  readonly #stopwords: ReadonlySet<string>
  readonly #segmenter = new Intl.Segmenter('und', { granularity: 'word' })

  constructor(language: LoadedLanguage) {
    this.#stopwords = language.stopwords
  }

  /**
   * Analyzes a run of characters of these scripts.
   *
   * @param previous  last character of the previous part, if the run is part of a longer one
   */
  analyze(run: string, previous?: string): TokenSequence {
    const text = normalizeText(run)
    const characters = text.match(character) ?? []
    const isStopCharacter = new Uint8Array(characters.length)
    const tokens: Token[] = []
    let words = 0
    let at = 0
    for (const segment of characters.length === 1 ? characters : this.#segments(text)) {
      const word = cutUnits(segment.replace(finalLongVowel, '$1'), termUnitsMax)
      let span = 0
      for (let units = 0; units < segment.length && at + span < characters.length; span++)
        units += characters[at + span]!.length
      const isStopword = this.#stopwords.has(word)
      if (isStopword) isStopCharacter.fill(1, at, at + span)
      if (span > 1 || !han.test(word)) tokens.push({ term: word, at, span, isStopword, surface: word })
      words++
      at += span
    }
    for (const [at, one] of characters.entries()) {
      const isStopword = isStopCharacter[at] === 1
      const before = at > 0 ? characters[at - 1] : previous
      if (han.test(one)) tokens.push(characterToken(one, at, 1, isStopword))
      if (before !== undefined)
        tokens.push(
          characterToken(before + one, at - 1, 2, isStopword || (at > 0 && isStopCharacter[at - 1] === 1)),
        )
    }
    tokens.sort((a, b) => a.at - b.at)
    return { tokens, positions: characters.length, words, characters }
  }

  *#segments(text: string): Generator<string, void, undefined> {
    for (const { segment } of this.#segmenter.segment(text)) yield segment
  }
}

function characterToken(characters: string, at: number, span: number, isStopword: boolean): Token {
  return { term: cutUnits(characterTermPrefix + characters, termUnitsMax), at, span, isStopword }
}
