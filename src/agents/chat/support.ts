import { dotProduct } from '../../base/dot-product.ts'
import { terms, words } from '../../base/words.ts'
import { segmentsOf, withoutMarks } from './claims.ts'

/** Texts that can support the sentences of an answer. */
export interface Evidence {
  /** Texts of passages, in Markdown. */
  readonly passages: readonly string[]
  /** Other text whose numbers and names an answer may repeat, such as the question and titles of documents. */
  readonly context: string
}

/** Returns a vector of length 1 for each text. */
export type EmbedTexts = (texts: readonly string[]) => Promise<Float32Array[]>

/**
 * Minimum support of a sentence that is not marked. Chosen with labeled sentences so that few supported sentences are
 * marked.
 *
 * @see docs/decisions/0052-faithfulness.md
 */
export const SUPPORT_MIN = 0.35

/** Support of a sentence with a number or name that is not in the evidence, or that negates a sentence of it. */
const CONTRADICTED = -1

/**
 * Minimum shares of the terms of a sentence that one sentence of a passage contains: for a sentence that counts as
 * supported without the model, and for one that repeats it so closely that another small number, or a negation, is a
 * contradiction.
 */
const COMMON_TERMS_MIN = { supported: 0.5, number: 0.6, negation: 0.75 }

/** Maximum length of a piece of a passage. The sentence model reads about 256 tokens of a text. */
const PIECE_CHARS_MAX = 1_000

/** Frequent English words that other languages rarely use. */
const englishWords = new Set(
  'the of and to is are for with that this these it its you your by from be been has have not or which at as if can when they their'.split(
    ' ',
  ),
)
/** Minimum share of these words in an English text. Whole passages have 0.25 or more, and texts in other languages up to 0.08. */
const ENGLISH_SHARE_MIN = 0.1

/**
 * Returns the support of sentences by passages, from -1 to 1: the largest share of the terms of a sentence that a sentence
 * of a passage contains, or if that is below one half, the largest similarity in meaning. Sentences with a number or name
 * that occurs nowhere in the evidence get -1, and so do sentences that repeat a sentence of a passage but negate it.
 */
export async function supportOf(
  sentences: readonly string[],
  { passages, context }: Evidence,
  embed: EmbedTexts,
): Promise<number[]> {
  const pieces = passages.flatMap(piecesOf)
  const facts = factsIn([...passages, context].join('\n'))
  const supports = sentences.map(sentence => supportByWords(sentence, pieces, facts))
  const unclear = sentences.filter((_, at) => supports[at] === undefined)
  if (unclear.length === 0 || pieces.length === 0) return supports.map(support => support ?? 0)
  const sentenceVectors = await embed(unclear)
  const pieceVectors = await embed(pieces.map(({ text }) => text))
  const similarities = sentenceVectors.map(vector =>
    Math.max(...pieceVectors.map(other => dotProduct(vector, other))),
  )
  return supports.map(support => support ?? similarities.shift()!)
}

/** Returns undefined if the words of a sentence do not decide its support. */
function supportByWords(sentence: string, pieces: readonly Piece[], facts: Facts): number | undefined {
  const sentenceTerms = [...new Set(terms(sentence))]
  const shares = pieces.map(
    piece => sentenceTerms.filter(term => piece.terms.has(term)).length / (sentenceTerms.length || 1),
  )
  const share = Math.max(0, ...shares)
  if (hasUnknownFact(sentence, share, facts)) return CONTRADICTED
  const nearest = pieces[shares.indexOf(share)]
  const isNegated = nearest && negation.test(sentence) !== negation.test(nearest.text)
  if (isNegated && share >= COMMON_TERMS_MIN.negation) return CONTRADICTED
  return share >= COMMON_TERMS_MIN.supported ? share : undefined
}

/** Returns true if a text is probably in English, judging by its most frequent words. */
export function isEnglish(text: string): boolean {
  const all = words(text)
  return all.filter(word => englishWords.has(word)).length >= ENGLISH_SHARE_MIN * all.length
}

/** A sentence of a passage, or a line of a table or of code. */
interface Piece {
  readonly text: string
  readonly terms: ReadonlySet<string>
}

function piecesOf(passage: string): Piece[] {
  return segmentsOf(passage)
    .map(({ start, end }) => passage.slice(start, end))
    .flatMap(segment => (tableOrCode.test(segment) ? segment.split('\n') : [segment]))
    .map(piece => withoutMarks(piece).slice(0, PIECE_CHARS_MAX))
    .filter(text => words(text).length > 0)
    .map(text => ({ text, terms: new Set(terms(text)) }))
}

const tableOrCode = /^[ \t>]*(?:\||```|~~~)/m

/** Numbers and words of the evidence. Numbers are in digits. */
interface Facts {
  readonly numbers: ReadonlySet<string>
  readonly words: ReadonlySet<string>
  /** The first {@link NAME_STEM_CHARS} characters of longer words. */
  readonly stems: ReadonlySet<string>
}

/** Number of characters that related names have in common, such as "Scotland" and "Scottish". */
const NAME_STEM_CHARS = 4

function factsIn(text: string): Facts {
  const all = new Set(words(text))
  return {
    numbers: new Set([...numbersIn(text).keys()]),
    words: all,
    stems: new Set([...all].map(word => word.slice(0, NAME_STEM_CHARS))),
  }
}

/** @param share  share of the terms of the sentence that the nearest sentence of a passage contains */
function hasUnknownFact(sentence: string, share: number, facts: Facts): boolean {
  const isRepeated = share >= COMMON_TERMS_MIN.number
  for (const [number, isSmallWord] of numbersIn(sentence))
    if (!facts.numbers.has(number) && (isRepeated || !isSmallWord)) return true
  return namesIn(sentence).some(name => !isNameIn(name, facts))
}

const negation = /\b(?:not|never|no|cannot|without|except|neither|nor|none)\b|n['’]t\b/i

const smallNumbers =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty'
const tens = 'thirty forty fifty sixty seventy eighty ninety'
const numberWords = new Map<string, number>([
  ...smallNumbers.split(' ').map((word, at) => [word, at] as const),
  ...tens.split(' ').map((word, at) => [word, 30 + 10 * at] as const),
])

/** Digits, or a word that is not a multiple of a larger number, as in "two hundred". */
const numberOrWord = /\d+(?:[.,]\d+)*|\b[a-z]{1,20}\b(?! (?:hundred|thousand|million|billion))/g

/**
 * Returns the numbers of a text in digits. The value is true for numbers up to ten that are written as words, because
 * sentences in other words often contain such numbers.
 */
function numbersIn(text: string): Map<string, boolean> {
  const numbers = new Map<string, boolean>()
  for (const [match] of text.toLowerCase().matchAll(numberOrWord)) {
    const value = numberWords.get(match)
    if (/\d/.test(match)) numbers.set(canonicalNumber(match), false)
    else if (value !== undefined && !numbers.has(String(value))) numbers.set(String(value), value <= 10)
  }
  return numbers
}

/** Returns a number without separators of thousands and without zeros that do not change it. */
function canonicalNumber(digits: string): string {
  const plain = digits.replace(/,(?=\d{3}(?!\d))/g, '').replace(',', '.')
  return Number.isNaN(Number(plain)) ? plain : String(Number(plain))
}

/** Minimum length of a name without digits. Shorter ones are often abbreviations of words of the evidence. */
const NAME_CHARS_MIN = 4
/** Maximum length of a name. Longer words are data, such as hashes. */
const NAME_CHARS_MAX = 64

/** Returns words with a capital letter that do not start a sentence, and identifiers such as `HR-27` and `sync_timeout`. */
function namesIn(sentence: string): string[] {
  const all = sentence.split(' ')
  return all.flatMap((each, at) => {
    if (each.length > NAME_CHARS_MAX) return []
    const word = each.replace(/^[("“‘'[]+/, '').replace(/(?:['’]s)?[)"”’'\].,;:!?]*$/, '')
    const isCapitalized = at > 0 && !/[.!?:"“]$/.test(all[at - 1]!) && /^\p{Lu}/u.test(word)
    const isIdentifier = /\w[_.]\w/.test(word) || (/^\p{L}/u.test(word) && /\d/.test(word))
    const isLong = word.length >= NAME_CHARS_MIN || /\d/.test(word)
    return (isCapitalized || isIdentifier) && isLong && /\p{L}/u.test(word) ? [word] : []
  })
}

function isNameIn(text: string, facts: Facts): boolean {
  return words(text).every(
    word =>
      facts.words.has(word) ||
      (word.length >= NAME_STEM_CHARS && facts.stems.has(word.slice(0, NAME_STEM_CHARS))),
  )
}
