import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { suggestFix } from './suggest-fix.ts'

export type Literal = string | number | boolean
export type Comparison = '=' | '<>' | '<' | '<=' | '>' | '>='

/** One side of a comparison. `position` is that of its first character in the source, counted from 1. */
export type Operand = { readonly position: number } & (
  | { readonly kind: 'literal'; readonly value: Literal }
  /** `$principal.name` */
  | { readonly kind: 'attribute'; readonly name: string }
  /** `current_principal_id()` */
  | { readonly kind: 'principalId' }
  | { readonly kind: 'column'; readonly name: string }
)

/** A part of the source, without the parentheses around it. Positions are counted from 1, and `end` is exclusive. */
export interface SourceRange {
  readonly position: number
  readonly end: number
}

/** A condition without other conditions inside it. */
export type PolicyCondition = SourceRange &
  (
    | {
        readonly kind: 'compare'
        readonly op: Comparison
        readonly left: Operand
        readonly right: Operand
      }
    | { readonly kind: 'in'; readonly operand: Operand; readonly values: readonly Operand[] }
    /** `operand = ANY(column)` */
    | { readonly kind: 'any'; readonly operand: Operand; readonly column: string }
    /** `column @> ARRAY[values]` */
    | { readonly kind: 'contains'; readonly column: string; readonly values: readonly Operand[] }
  )

/** A parsed predicate over rows. */
export type Policy =
  | PolicyCondition
  | (SourceRange & { readonly kind: 'and' | 'or'; readonly parts: readonly Policy[] })
  | (SourceRange & { readonly kind: 'not'; readonly inner: Policy })

type TokenKind = 'string' | 'integer' | 'attribute' | 'column' | 'word' | 'symbol' | 'end'

interface Token {
  readonly kind: TokenKind
  /** Parsed value: a string without quotes, a keyword in uppercase, or a name without its prefix. */
  readonly text: string
  readonly position: number
}

const lexemes: readonly [kind: TokenKind, pattern: RegExp][] = [
  ['string', /'((?:[^']|'')*)'/y],
  ['integer', /(\d+)/y],
  ['attribute', /\$principal\.([A-Za-z_][A-Za-z0-9_]*)/y],
  ['column', /row\.([A-Za-z_][A-Za-z0-9_]*)/y],
  ['word', /([A-Za-z_][A-Za-z0-9_]*)/y],
  ['symbol', /(<>|!=|<=|>=|@>|[=<>()[\],])/y],
]
const blank = /\s*/y
/** Returns true if a policy can name a metadata key as a column. */
export function isColumnName(key: string): boolean {
  return key.length <= limits.policyChars && /^[A-Za-z_][A-Za-z0-9_]*$/.test(key)
}

const keywords: ReadonlySet<string> = new Set(['AND', 'OR', 'NOT', 'IN', 'ANY', 'ARRAY', 'TRUE', 'FALSE'])
const principalFunction = 'CURRENT_PRINCIPAL_ID'
const comparisons: ReadonlyMap<string, Comparison> = new Map([
  ['=', '='],
  ['<>', '<>'],
  ['!=', '<>'],
  ['<', '<'],
  ['<=', '<='],
  ['>', '>'],
  ['>=', '>='],
])

/**
 * Parses a predicate of the policy language, by recursive descent in one pass.
 *
 * @param dsl  at most `limits.policyChars` characters, with at most `limits.policyDepth` nested parentheses
 *   and NOTs
 * @throws validation_error  when the predicate is invalid; the message starts with the position:
 *   `col 7: expected a column, a value …`
 * @see docs/access.md#write-a-policy
 */
export function parsePolicy(dsl: string): Policy {
  if (dsl.length > limits.policyChars)
    throw policyError(limits.policyChars + 1, `a policy can have at most ${limits.policyChars} characters`)
  return new Parser(dsl).parseAll()
}

/**
 * Returns a validation error whose message starts with a position.
 *
 * @param hint  how to correct the policy
 */
export function policyError(position: number, message: string, hint?: string): WbError {
  return new WbError('validation_error', `col ${position}: ${message}`, { hint })
}

class Parser {
  readonly #dsl: string
  #offset = 0
  /** Position after the last token that was consumed. */
  #end = 1
  #next: Token
  #depth = 0

  constructor(dsl: string) {
    this.#dsl = dsl
    this.#next = this.#read()
  }

  parseAll(): Policy {
    const policy = this.#predicate()
    if (this.#next.kind !== 'end') throw this.#expected('AND, OR or the end of the policy')
    return policy
  }

  #predicate(): Policy {
    return this.#chain('OR', 'or', () => this.#chain('AND', 'and', () => this.#negation()))
  }

  #chain(keyword: string, kind: 'and' | 'or', parsePart: () => Policy): Policy {
    const { position } = this.#next
    const parts = [parsePart()]
    while (this.#accept(keyword)) parts.push(parsePart())
    return parts.length === 1 ? parts[0]! : { kind, parts, position, end: this.#end }
  }

  #negation(): Policy {
    const { position } = this.#next
    if (this.#is('NOT'))
      return this.#nested(() => {
        const inner = this.#negation()
        return { kind: 'not', inner, position, end: this.#end }
      })
    if (!this.#is('(')) return this.#comparison()
    return this.#nested(() => {
      const inner = this.#predicate()
      this.#require(')')
      return inner
    })
  }

  /** Consumes the next token, and parses the rest one level deeper. */
  #nested(parse: () => Policy): Policy {
    const { position } = this.#advance()
    if (++this.#depth > limits.policyDepth)
      throw policyError(position, `the policy is nested deeper than ${limits.policyDepth} levels`)
    const policy = parse()
    this.#depth--
    return policy
  }

  #comparison(): PolicyCondition {
    const left = this.#operand()
    const { position } = left
    if (this.#accept('IN')) {
      const values = this.#list('(', ')')
      return { kind: 'in', position, end: this.#end, operand: left, values }
    }
    if (this.#is('@>')) {
      if (left.kind !== 'column') throw policyError(position, 'expected a column before @>')
      this.#advance()
      this.#require('ARRAY')
      const values = this.#list('[', ']')
      return { kind: 'contains', position, end: this.#end, column: left.name, values }
    }
    const op = comparisons.get(this.#next.kind === 'symbol' ? this.#next.text : '')
    if (!op) throw this.#expected('a comparison, IN or @>')
    this.#advance()
    if (op === '=' && this.#accept('ANY')) {
      const column = this.#column()
      return { kind: 'any', position, end: this.#end, operand: left, column }
    }
    const right = this.#operand()
    return { kind: 'compare', position, end: this.#end, op, left, right }
  }

  /** Parses `(column)`. */
  #column(): string {
    this.#require('(')
    const operand = this.#operand()
    if (operand.kind !== 'column') throw policyError(operand.position, 'expected a column in ANY')
    this.#require(')')
    return operand.name
  }

  /** Parses a list of literals. Columns are accepted, because a later check reports them more precisely. */
  #list(open: string, close: string): Operand[] {
    this.#require(open)
    const values: Operand[] = []
    do {
      const value = this.#operand()
      if (value.kind !== 'literal' && value.kind !== 'column')
        throw policyError(value.position, 'expected a string, a number, TRUE or FALSE')
      values.push(value)
    } while (this.#accept(','))
    this.#require(close)
    return values
  }

  #operand(): Operand {
    const { kind, text, position } = this.#next
    const operand = this.#valueOf(kind, text)
    if (!operand) throw this.#expected('a column, a value or $principal')
    this.#advance()
    if (operand.kind === 'principalId') {
      this.#require('(')
      this.#require(')')
    }
    return { ...operand, position }
  }

  #valueOf(kind: TokenKind, text: string) {
    switch (kind) {
      case 'string':
        return { kind: 'literal', value: text } as const
      case 'integer':
        return { kind: 'literal', value: this.#integer(text) } as const
      case 'attribute':
      case 'column':
        return { kind, name: text } as const
      case 'word':
        if (text === 'TRUE' || text === 'FALSE') return { kind: 'literal', value: text === 'TRUE' } as const
        if (text === principalFunction) return { kind: 'principalId' } as const
        return keywords.has(text) ? undefined : ({ kind: 'column', name: text } as const)
      default:
        return undefined
    }
  }

  #integer(text: string): number {
    const value = Number(text)
    if (!Number.isSafeInteger(value))
      throw policyError(this.#next.position, `expected a number up to ${Number.MAX_SAFE_INTEGER}`)
    return value
  }

  #is(text: string): boolean {
    return (this.#next.kind === 'symbol' || this.#next.kind === 'word') && this.#next.text === text
  }

  #accept(text: string): boolean {
    if (!this.#is(text)) return false
    this.#advance()
    return true
  }

  #require(text: string): void {
    if (!this.#accept(text)) throw this.#expected(text)
  }

  #expected(expected: string): WbError {
    const { kind, position } = this.#next
    return policyError(
      position,
      `expected ${expected}${kind === 'end' ? ', but found the end of the policy' : ''}`,
      suggestFix(this.#dsl, position, expected),
    )
  }

  #advance(): Token {
    const token = this.#next
    this.#end = this.#offset + 1
    this.#next = this.#read()
    return token
  }

  #read(): Token {
    this.#offset += this.#match(blank)?.[0].length ?? 0
    const position = this.#offset + 1
    if (this.#offset === this.#dsl.length) return { kind: 'end', text: '', position }
    for (const [kind, pattern] of lexemes) {
      const match = this.#match(pattern)
      if (!match) continue
      this.#offset += match[0].length
      return { kind, text: lexemeValue(kind, match[1]!), position }
    }
    const isOpenString = this.#dsl[this.#offset] === "'"
    throw policyError(
      position,
      isOpenString ? 'the string has no closing quote' : 'unexpected character',
      isOpenString ? undefined : suggestFix(this.#dsl, position, null),
    )
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#offset
    return pattern.exec(this.#dsl)
  }
}

/** Returns the value of a lexeme. Keywords are case-insensitive, names are not. */
function lexemeValue(kind: TokenKind, text: string): string {
  if (kind === 'string') return text.replaceAll("''", "'")
  const upper = text.toUpperCase()
  return kind === 'word' && (keywords.has(upper) || upper === principalFunction) ? upper : text
}
