/** IDs of the tokens that have a meaning of their own in the vocabulary of BERT. */
const UNKNOWN = 100
const START = 101
const END = 102

/** Maximum number of tokens of a text, with those of its start and its end. */
export const TOKENS_MAX = 256

/** Words with more characters are unknown. */
const WORD_CHARACTERS_MAX = 100

/**
 * Maximum number of characters that are read. Text has at most 254 words, and these are rarely longer, so the limit matters
 * only for long runs of spaces or of one word.
 */
const TEXT_CHARACTERS_MAX = 32_768

/** Ranges of characters that are words of their own: CJK ideographs. */
const ideographs =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu

/** Words, and single characters of punctuation. The ASCII symbols `$+<=>^|~` and the grave accent count as punctuation. */
const words = /[\p{P}$+<=>^`|~]|[^\p{P}$+<=>^`|~\s]+/gu

/**
 * The tokenizer of BERT for uncased text (WordPiece): splits text at spaces and punctuation, and words into the longest
 * parts that the vocabulary has. Special tokens such as `[SEP]` in a text are read as text.
 */
export class WordPieceTokenizer {
  readonly #ids: ReadonlyMap<string, number>

  /** @param vocabulary  tokens by ID; those that continue a word start with `##` */
  constructor(vocabulary: readonly string[]) {
    this.#ids = new Map(vocabulary.map((token, id) => [token, id]))
  }

  /** Returns the token IDs of a text, with start and end. Text beyond {@link TOKENS_MAX} tokens is omitted. */
  encode(text: string): Uint16Array {
    const ids = [START]
    for (const [word] of normalize(text.slice(0, TEXT_CHARACTERS_MAX)).matchAll(words)) {
      this.#encodeWord(word, ids)
      if (ids.length >= TOKENS_MAX - 1) break
    }
    ids.length = Math.min(ids.length, TOKENS_MAX - 1)
    ids.push(END)
    return Uint16Array.from(ids)
  }

  /** Appends the IDs of a word; that of an unknown word if a part of it is not in the vocabulary. */
  #encodeWord(word: string, ids: number[]): void {
    const whole = this.#ids.get(word)
    if (whole !== undefined) {
      ids.push(whole)
      return
    }
    const characters = [...word]
    const parts = characters.length <= WORD_CHARACTERS_MAX ? this.#split(characters) : undefined
    ids.push(...(parts ?? [UNKNOWN]))
  }

  #split(characters: readonly string[]): number[] | undefined {
    const parts: number[] = []
    for (let from = 0; from < characters.length; ) {
      let to = characters.length
      let id: number | undefined
      for (; to > from; to--) {
        id = this.#ids.get((from > 0 ? '##' : '') + characters.slice(from, to).join(''))
        if (id !== undefined) break
      }
      if (id === undefined) return undefined
      parts.push(id)
      from = to
    }
    return parts
  }
}

/** Removes control characters and accents, and lowercases text. Surrounds ideographs with spaces. */
function normalize(text: string): string {
  return (
    text
      .replace(/[^\P{C}\t\n\r]|\ufffd/gu, '')
      .replace(ideographs, ' $& ')
      .normalize('NFD')
      .replace(/\p{Mn}/gu, '')
      // Lowercase of a whole string would depend on the position of a sigma in its word.
      .replaceAll('Σ', 'σ')
      .toLowerCase()
  )
}
