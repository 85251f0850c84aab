import { sha256 } from '../../base/id.ts'

/** What every provider takes as the name of a function. */
const plain = /^[a-zA-Z0-9_-]{1,64}$/
const spellingCharsMax = 64
const hashChars = 8

/**
 * Names of tools as providers take them, and back.
 *
 * A name that no provider refuses stays as it is. Any other is spelled by what of it they take and a hash of all of it,
 * so that it is spelled the same in every request where no other name is in the way.
 */
export class ToolNames {
  readonly #spellings = new Map<string, string>()
  readonly #names = new Map<string, string>()

  /** @param names  all that a request speaks of; any text, also twice */
  constructor(names: Iterable<string>) {
    const distinct = [...new Set(names)]
    for (const name of distinct) if (plain.test(name)) this.#put(name, name)
    for (const name of distinct) if (!plain.test(name)) this.#put(name, this.#free(name))
  }

  /** How a name of the request is spelled: 1 to 64 characters of `[a-zA-Z0-9_-]`, no two alike. */
  spelled(name: string): string {
    const spelling = this.#spellings.get(name)
    if (spelling === undefined) throw new Error(`"${name}" is no name of this request`)
    return spelling
  }

  /** The name that is spelled so; what a model made up, as it is. */
  named(spelling: string): string {
    return this.#names.get(spelling) ?? spelling
  }

  /** Whether a name of the request is spelled so. */
  knows(spelling: string): boolean {
    return this.#names.has(spelling)
  }

  #put(name: string, spelling: string): void {
    this.#spellings.set(name, spelling)
    this.#names.set(spelling, name)
  }

  #free(name: string): string {
    const beginning = name.replace(/[^a-zA-Z0-9_-]+/g, '_').slice(0, spellingCharsMax - hashChars - 1)
    for (let salt = ''; ; salt += ' ') {
      const spelling = `${beginning}_${sha256(name + salt).slice(0, hashChars)}`
      if (!this.#names.has(spelling)) return spelling
    }
  }
}
