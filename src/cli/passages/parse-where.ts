import { UsageError } from '../errors.ts'

/** A condition in the filter syntax of the API. */
export type Condition = Readonly<Record<string, unknown>>

type Scalar = string | number | boolean

const depthMax = 16
const rangeOperators: Readonly<Record<string, string>> = {
  '<': '$lt',
  '<=': '$lte',
  '>': '$gt',
  '>=': '$gte',
}
const keyPattern = /(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s()<>=!,'"]+)/y
const operatorPattern = /<=|>=|!=|==?|<|>/y
const quotedPattern = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y
const wordPattern = /[^\s()'"][^\s()]*/y
const listWordPattern = /[^\s(),'"][^\s(),]*/y
const spacePattern = /\s*/y
const keywordPattern = /(?:and|or|not|in)(?=[\s()]|$)/iy

/**
 * Parses a condition, such as `year >= 2024 and tag in (a, b)`.
 *
 * Comparisons (`= != < <= > >=`, `in (…)`, `not in (…)`) are combined with `not`, `and` and `or`, in this order of
 * precedence, and with parentheses. A value that looks like a number or a boolean also matches the string. Values and
 * keys that contain a word or a character of the grammar must be quoted.
 *
 * @param options.flag    name of the flag, for messages
 * @param options.prefix  text of the flag before the condition, for the example in a message
 * @throws UsageError  the text is not a condition; the message contains the column
 */
export function parseWhere(text: string, { flag = '--where', prefix = '' } = {}): Condition {
  const parser = new WhereParser(text, flag, prefix)
  const condition = parser.readAlternatives(0)
  parser.requireEnd()
  return condition
}

class WhereParser {
  #at = 0

  constructor(
    private readonly text: string,
    private readonly flag: string,
    private readonly prefix: string,
  ) {}

  /** Reads conditions that are combined with `or`. */
  readAlternatives(depth: number): Condition {
    if (depth > depthMax) this.#fail(`more than ${depthMax} parentheses are nested`)
    return this.#readList('or', () => this.#readList('and', () => this.#readTerm(depth)))
  }

  requireEnd(): void {
    this.#skipSpace()
    if (this.#at < this.text.length) this.#fail(`"${this.text.slice(this.#at, this.#at + 20)}" is unexpected`)
  }

  #readList(word: 'and' | 'or', readPart: () => Condition): Condition {
    const parts = [readPart()]
    while (this.#takeKeyword(word)) parts.push(readPart())
    return parts.length === 1 ? parts[0]! : { [`$${word}`]: parts }
  }

  #readTerm(depth: number): Condition {
    let isNegated = false
    while (this.#takeKeyword('not')) isNegated = !isNegated
    const condition = this.#takeSymbol('(') ? this.#readGroup(depth) : this.#readComparison()
    return isNegated ? { $not: condition } : condition
  }

  #readGroup(depth: number): Condition {
    const condition = this.readAlternatives(depth + 1)
    if (!this.#takeSymbol(')')) this.#fail('a closing parenthesis is missing')
    return condition
  }

  #readComparison(): Condition {
    this.#skipSpace()
    const key = this.#take(keyPattern)
    if (key === undefined) return this.#fail('a key is missing')
    const name = unquote(key)
    if (name.startsWith('$')) return this.#fail('a key cannot start with "$"')
    const isNegated = this.#takeKeyword('not')
    if (this.#takeKeyword('in')) return { [name]: { [isNegated ? '$nin' : '$in']: this.#readListValues() } }
    this.#skipSpace()
    const operator = isNegated ? undefined : this.#take(operatorPattern)
    if (operator === undefined) return this.#fail(`an operator is missing after "${name}"`)
    const { value, isQuoted } = this.#readValue(wordPattern)
    const range = rangeOperators[operator]
    if (range !== undefined) {
      if (value === '' && !isQuoted) this.#fail(`a value is missing after "${operator}"`)
      return { [name]: { [range]: isQuoted ? value : (numberOf(value) ?? value) } }
    }
    const values = isQuoted ? [value] : possibleValues(value)
    if (operator === '!=') return { [name]: values.length === 1 ? { $ne: value } : { $nin: values } }
    return { [name]: values.length === 1 ? value : { $in: values } }
  }

  #readListValues(): Scalar[] {
    if (!this.#takeSymbol('(')) this.#fail('a list in parentheses is missing after "in"')
    const values: Scalar[] = []
    do {
      const { value, isQuoted } = this.#readValue(listWordPattern)
      values.push(...(isQuoted ? [value] : possibleValues(value)))
    } while (this.#takeSymbol(','))
    if (!this.#takeSymbol(')')) this.#fail('a closing parenthesis is missing')
    return values
  }

  /** Reads a quoted value, or words up to the next keyword. */
  #readValue(pattern: RegExp): { value: string; isQuoted: boolean } {
    this.#skipSpace()
    const quoted = this.#take(quotedPattern)
    if (quoted !== undefined) return { value: unquote(quoted), isQuoted: true }
    const from = this.#at
    let end = from
    while (!this.#isAtKeyword() && this.#take(pattern) !== undefined) {
      end = this.#at
      this.#skipSpace()
    }
    this.#at = end
    return { value: this.text.slice(from, end), isQuoted: false }
  }

  #takeKeyword(word: 'and' | 'or' | 'not' | 'in'): boolean {
    this.#skipSpace()
    if (this.#keyword() !== word) return false
    this.#at += word.length
    return true
  }

  #isAtKeyword(): boolean {
    return this.#keyword() !== undefined
  }

  #keyword(): string | undefined {
    return this.#match(keywordPattern)?.toLowerCase()
  }

  #takeSymbol(symbol: string): boolean {
    this.#skipSpace()
    if (this.text[this.#at] !== symbol) return false
    this.#at++
    return true
  }

  #skipSpace(): void {
    this.#take(spacePattern)
  }

  #take(pattern: RegExp): string | undefined {
    const taken = this.#match(pattern)
    this.#at += taken?.length ?? 0
    return taken
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    return pattern.exec(this.text)?.[0]
  }

  #fail(fact: string): never {
    throw new UsageError(`${this.flag} "${this.text}": ${fact} (column ${this.#at + 1})`, [
      `${this.flag} '${this.prefix}lang = en and year >= 2024'`,
    ])
  }
}

function unquote(text: string): string {
  return /^['"]/.test(text) ? text.slice(1, -1).replace(/\\(.)/g, '$1') : text
}

/** Returns the value as a string and, if possible, as a number or boolean, because metadata can contain either. */
function possibleValues(text: string): Scalar[] {
  if (text === 'true' || text === 'false') return [text === 'true', text]
  const number = numberOf(text)
  return number === undefined ? [text] : [number, text]
}

function numberOf(text: string): number | undefined {
  const number = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined
  return number !== undefined && Number.isFinite(number) ? number : undefined
}
