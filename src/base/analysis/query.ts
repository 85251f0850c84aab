import { characterKinds, kindAt } from './characters.ts'
import { compilePhrase, type Phrase } from './phrase.ts'
import type { Token, Tokenizer } from './token.ts'

/** Maximum number of terms of a query. Further terms are ignored. */
const queryTermsMax = 256
/** Maximum number of phrases of a query. Further phrases are ignored. */
const phrasesMax = 16
/** Minimum length of the stem of an unfinished word. */
const stemUnitsMin = 3
/** Maximum number of letters of an unfinished word after its stem. */
const suffixUnitsMax = 8

const quotes: Readonly<Record<string, string>> = {
  '"': '"',
  '“': '”“',
  '„': '“”',
  '«': '»',
  '「': '」',
  '『': '』',
}

export interface QueryOptions {
  /** Treats the last word as unfinished unless a space follows. Default: false. */
  readonly isTyping?: boolean
}

/** A term to rank by. */
export interface QueryTerm {
  readonly term: string
  /** Word in lowercase and without accents, to search for similar words. Undefined for parts of words. */
  readonly word?: string
}

/** A word that is being typed. A text matches if one of its words starts with one of `prefixes`. */
export interface TypedWord {
  /** Prefixes of words, without accents. */
  readonly prefixes: readonly string[]
  /**
   * Possible stems of the complete word that are not longer than the typed part: `run` for `runni`. Call `matches` to check
   * a text that contains one of them.
   */
  readonly shorterTerms: readonly string[]
  matches(text: string): boolean
}

export interface ParsedQuery {
  /** Distinct terms, without stop words if there are others. At most 256. */
  readonly terms: readonly QueryTerm[]
  /** Quoted phrases, all of which a text must contain. At most 16. */
  readonly phrases: readonly Phrase[]
  readonly typedWord?: TypedWord
}

/** Splits a query by the rules of a tokenizer. A quotation mark without its counterpart is ignored. */
export function parseTextQuery(tokenizer: Tokenizer, text: string, { isTyping }: QueryOptions): ParsedQuery {
  const phrases = quotedParts(text)
    .slice(0, phrasesMax)
    .flatMap(part => compilePhrase(tokenizer, part) ?? [])
  const last = isTyping && endsInWord(text) ? lastWord(tokenizer, text) : undefined
  const all: Token[] = []
  tokenizer.scan(text, ({ tokens, characters }) => {
    all.push(...(characters ? withoutCoveredCharacters(tokens) : tokens))
  })
  const complete = last ? all.slice(0, all.length - last.tokens.length).concat(last.completed) : all
  const meaningful = complete.filter(token => !token.isStopword)
  const terms = new Map<string, QueryTerm>()
  for (const { term, surface } of meaningful.length > 0 || last ? meaningful : complete) {
    if (terms.size === queryTermsMax) break
    if (!terms.has(term)) terms.set(term, surface === undefined ? { term } : { term, word: surface })
  }
  return { terms: [...terms.values()], phrases, ...(last && { typedWord: last.typedWord }) }
}

/** Removes the terms of single characters if there are bigrams, which cover them. */
function withoutCoveredCharacters(tokens: readonly Token[]): readonly Token[] {
  const hasBigram = tokens.some(({ span, surface }) => span > 1 && surface === undefined)
  return hasBigram ? tokens.filter(({ span, surface }) => span > 1 || surface !== undefined) : tokens
}

/** Returns true if a query has words in quotation marks. */
export function hasPhrase(text: string): boolean {
  return quotedParts(text).some(part => /[\p{L}\p{N}]/u.test(part))
}

/** Returns the parts of a text between quotation marks, in linear time. */
function quotedParts(text: string): string[] {
  const parts: string[] = []
  let start = -1
  let closing = ''
  for (let at = 0; at < text.length; at++) {
    const mark = text[at]!
    if (start !== -1 && closing.includes(mark)) {
      parts.push(text.slice(start, at))
      start = -1
    } else if (start === -1 && Object.hasOwn(quotes, mark)) {
      start = at + 1
      closing = quotes[mark]!
    }
  }
  return parts
}

function endsInWord(text: string): boolean {
  if (text === '') return false
  const low = text.charCodeAt(text.length - 1)
  const isPair = low >= 0xdc00 && low < 0xe000 && text.length > 1
  return kindAt(text, text.length - (isPair ? 2 : 1)) === characterKinds.word
}

function lastWord(tokenizer: Tokenizer, text: string) {
  let tokens: readonly Token[] = []
  let positions = 0
  tokenizer.scan(text, sequence => {
    tokens = sequence.tokens
    positions = sequence.positions
  })
  const isTyped = ({ at, span }: Token) => at + span === positions
  const surfaces = tokens.filter(isTyped).flatMap(({ surface }) => surface || [])
  if (surfaces.length === 0) return undefined
  const prefixes = [...new Set(surfaces)]
  const shorter = new Set(tokens.filter(isTyped).map(({ term }) => term))
  for (const prefix of prefixes)
    for (
      let length = prefix.length - 1;
      length >= stemUnitsMin && prefix.length - length <= suffixUnitsMax;
      length--
    )
      shorter.add(prefix.slice(0, length))
  const typedWord: TypedWord = {
    prefixes,
    shorterTerms: [...shorter],
    matches(candidate) {
      let isFound = false
      tokenizer.scan(candidate, sequence => {
        isFound ||= sequence.tokens.some(({ surface }) =>
          prefixes.some(prefix => surface?.startsWith(prefix)),
        )
      })
      return isFound
    },
  }
  return { tokens, completed: tokens.filter(token => !isTyped(token)), typedWord }
}
