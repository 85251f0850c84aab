import { sha256 } from '../../base/id.ts'

/** Matches function names that every provider accepts. */
const acceptedName = /^[a-zA-Z0-9_-]{1,64}$/
const replacementCharsMax = 64
const hashChars = 8

/**
 * Replaces tool names with names that all providers accept, and restores the original names.
 *
 * A name that all providers accept is not replaced. Any other name is replaced with its alias, if the alias is unique
 * in the request. Otherwise, the replacement consists of the accepted characters of the alias or the name, and a hash
 * of the name. Therefore, a name usually has the same replacement in all requests.
 */
export class ToolNames {
  readonly #replacements = new Map<string, string>()
  readonly #names = new Map<string, string>()

  /**
   * @param names    all tool names in a request; any strings, can contain duplicates
   * @param aliases  readable replacements by name
   */
  constructor(names: Iterable<string>, aliases: ReadonlyMap<string, string> = new Map()) {
    const distinct = [...new Set(names)]
    const namesToReplace = distinct.filter(name => !acceptedName.test(name))
    for (const name of distinct) if (acceptedName.test(name)) this.#put(name, name)
    const readableAliases = namesToReplace.map(name => toAcceptedChars(aliases.get(name) ?? ''))
    for (const [at, name] of namesToReplace.entries()) {
      const alias = readableAliases[at]!
      const isTaken = this.#names.has(alias) || readableAliases.filter(other => other === alias).length > 1
      if (acceptedName.test(alias) && !isTaken) this.#put(name, alias)
    }
    for (const [at, name] of namesToReplace.entries())
      if (!this.#replacements.has(name))
        this.#put(name, this.#uniqueReplacement(name, readableAliases[at] || toAcceptedChars(name)))
  }

  /** Returns the replacement of a name: 1 to 64 characters of `[a-zA-Z0-9_-]`, unique in the request. */
  encode(name: string): string {
    const replacement = this.#replacements.get(name)
    if (replacement === undefined) throw new Error(`"${name}" is not a tool name of this request`)
    return replacement
  }

  /**
   * Returns the original name for a replacement. Returns an unknown name unchanged, because models can invent names.
   */
  decode(replacement: string): string {
    return this.#names.get(replacement) ?? replacement
  }

  /** Returns true if a name in the request has this replacement. */
  hasEncoded(replacement: string): boolean {
    return this.#names.has(replacement)
  }

  #put(name: string, replacement: string): void {
    this.#replacements.set(name, replacement)
    this.#names.set(replacement, name)
  }

  #uniqueReplacement(name: string, text: string): string {
    const beginning = text.slice(0, replacementCharsMax - hashChars - 1)
    for (let salt = ''; ; salt += ' ') {
      const replacement = `${beginning}_${sha256(name + salt).slice(0, hashChars)}`
      if (!this.#names.has(replacement)) return replacement
    }
  }
}

function toAcceptedChars(text: string): string {
  return text.replace(/[^a-zA-Z0-9_-]+/g, '_')
}
