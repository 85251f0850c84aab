/** Maximum number of tokens of a text for the built-in model, with those of its start and its end. */
export const TOKENS_MAX = 256

/** Words with more characters are unknown. */
const WORD_CHARACTERS_MAX = 100

/**
 * Maximum number of characters that are read per token. Words are rarely longer, so the limit matters only for long runs of
 * spaces or of one word.
 */
const CHARACTERS_PER_TOKEN_MAX = 128

/** Settings of a tokenizer. The defaults are those of BERT for uncased text. */
export interface WordPieceSettings {
  /** Maximum number of tokens of a text, with those of its start and its end. */
  readonly tokensMax: number
  readonly lowercase: boolean
  readonly stripsAccents: boolean
  /** Tokens for unknown words, and for the start and the end of a text. */
  readonly unknown: string
  readonly start: string
  readonly end: string
}

const settingsOfBert: WordPieceSettings = {
  tokensMax: TOKENS_MAX,
  lowercase: true,
  stripsAccents: true,
  unknown: '[UNK]',
  start: '[CLS]',
  end: '[SEP]',
}

/** Ranges of characters that are words of their own: CJK ideographs. */
const ideographs =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b820}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu

/** Words, and single characters of punctuation. The ASCII symbols `$+<=>^|~` and the grave accent count as punctuation. */
const words = /[\p{P}$+<=>^`|~]|[^\p{P}$+<=>^`|~\s]+/gu

/**
 * The tokenizer of BERT (WordPiece): splits text at spaces and punctuation, and words into the longest parts that the
 * vocabulary has. Special tokens such as `[SEP]` in a text are read as text.
 */
export class WordPieceTokenizer {
  readonly #ids: ReadonlyMap<string, number>
  readonly #settings: WordPieceSettings
  readonly #unknown: number
  readonly #start: number
  readonly #end: number

  /**
   * @param vocabulary  tokens by ID; those that continue a word start with `##`
   * @throws Error  the vocabulary does not have a token of the settings
   */
  constructor(vocabulary: readonly string[], settings: Partial<WordPieceSettings> = {}) {
    this.#ids = new Map(vocabulary.map((token, id) => [token, id]))
    this.#settings = { ...settingsOfBert, ...settings }
    const idOf = (token: string) => {
      const id = this.#ids.get(token)
      if (id === undefined) throw new Error(`the vocabulary has no token ${token}`)
      return id
    }
    const { unknown, start, end } = this.#settings
    this.#unknown = idOf(unknown)
    this.#start = idOf(start)
    this.#end = idOf(end)
  }

  /** Returns the token IDs of a text, with start and end. Text beyond the maximum number of tokens is omitted. */
  encode(text: string): number[] {
    const { tokensMax } = this.#settings
    const ids = [this.#start]
    const read = this.#normalize(text.slice(0, tokensMax * CHARACTERS_PER_TOKEN_MAX))
    for (const [word] of read.matchAll(words)) {
      this.#encodeWord(word, ids)
      if (ids.length >= tokensMax - 1) break
    }
    ids.length = Math.min(ids.length, tokensMax - 1)
    ids.push(this.#end)
    return ids
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
    ids.push(...(parts ?? [this.#unknown]))
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

  /** Removes control characters. Surrounds ideographs with spaces. Removes accents and lowercases, depending on the settings. */
  #normalize(text: string): string {
    const { lowercase, stripsAccents } = this.#settings
    let normal = text.replace(/[^\P{C}\t\n\r]|\ufffd/gu, '').replace(ideographs, ' $& ')
    if (stripsAccents) normal = normal.normalize('NFD').replace(/\p{Mn}/gu, '')
    // Lowercase of a whole string would depend on the position of a sigma in its word.
    return lowercase ? normal.replaceAll('Σ', 'σ').toLowerCase() : normal
  }
}
