import { type Analyzer, openAnalyzer } from './analyzer.ts'

/** Signals that a language must be loaded before the work can be done. */
class LanguageNotLoaded extends Error {
  readonly language: string

  constructor(language: string) {
    super(`the language '${language}' is not loaded`)
    this.language = language
  }
}

/** The analyzers of a thread, one per language, which are loaded when they are needed. */
export class Analyzers {
  readonly #loaded = new Map<string, Analyzer>()

  /**
   * Runs work that calls {@link get}. If the work needs a language that is not loaded yet, loads it and runs the work
   * again, so the work must not have side effects before it calls `get`.
   */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof LanguageNotLoaded)) throw error
        await this.load(error.language)
      }
    }
  }

  /** Loads a language in advance, so that `run` does not have to repeat work. */
  async load(language: string): Promise<void> {
    if (!this.#loaded.has(language)) this.#loaded.set(language, await openAnalyzer({ language }))
  }

  /** Returns the analyzer of a language code, as returned by `languageCode`. Only for work inside {@link run}. */
  get(language: string): Analyzer {
    const analyzer = this.#loaded.get(language)
    if (!analyzer) throw new LanguageNotLoaded(language)
    return analyzer
  }
}
