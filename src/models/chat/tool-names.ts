import { sha256 } from '../../base/id.ts'

/** Function names that every provider accepts. */
const plain = /^[a-zA-Z0-9_-]{1,64}$/
const spellingCharsMax = 64
const hashChars = 8

/**
 * Translates tool names to names that providers accept, and back.
 *
 * A name that every provider accepts is unchanged. Any other name is replaced by its alias, unless another
 * name in the request has the same replacement. Otherwise it is replaced by the accepted characters of the
 * alias or name and a hash of the name, so that the replacement is usually equal in all requests.
 */
export class ToolNames {
  readonly #spellings = new Map<string, string>()
  readonly #names = new Map<string, string>()

  /**
   * @param names    all tool names in a request; any text, duplicates allowed
   * @param aliases  readable replacements by name
   */
  constructor(names: Iterable<string>, aliases: ReadonlyMap<string, string> = new Map()) {
    const distinct = [...new Set(names)]
    const others = distinct.filter(name => !plain.test(name))
    for (const name of distinct) if (plain.test(name)) this.#put(name, name)
    const wanted = others.map(name => readable(aliases.get(name) ?? ''))
    for (const [at, name] of others.entries()) {
      const alias = wanted[at]!
      const isTaken = this.#names.has(alias) || wanted.filter(one => one === alias).length > 1
      if (plain.test(alias) && !isTaken) this.#put(name, alias)
    }
    for (const [at, name] of others.entries())
      if (!this.#spellings.has(name)) this.#put(name, this.#free(name, wanted[at] || readable(name)))
  }

  /** Returns the replacement of a name: 1 to 64 characters of `[a-zA-Z0-9_-]`, unique in the request. */
  encode(name: string): string {
    const spelling = this.#spellings.get(name)
    if (spelling === undefined) throw new Error(`"${name}" is no name of this request`)
    return spelling
  }

  /**
   * Returns the original name for a replacement. Unknown names are returned unchanged, because models invent
   * names.
   */
  decode(spelling: string): string {
    return this.#names.get(spelling) ?? spelling
  }

  /** Returns true if a name in the request has this replacement. */
  hasEncoded(spelling: string): boolean {
    return this.#names.has(spelling)
  }

  #put(name: string, spelling: string): void {
    this.#spellings.set(name, spelling)
    this.#names.set(spelling, name)
  }

  #free(name: string, text: string): string {
    const beginning = text.slice(0, spellingCharsMax - hashChars - 1)
    for (let salt = ''; ; salt += ' ') {
      const spelling = `${beginning}_${sha256(name + salt).slice(0, hashChars)}`
      if (!this.#names.has(spelling)) return spelling
    }
  }
}

function readable(text: string): string {
  return text.replace(/[^a-zA-Z0-9_-]+/g, '_')
}
