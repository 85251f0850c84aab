import { compareCodePoints } from '../base/compare-code-points.ts'
import { includesValue } from '../base/includes-value.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'

/** A value that a condition compares stored values with. Numbers are finite. */
export type FilterValue = string | number | boolean | null

/** An operator that compares numbers numerically, and strings by code point. */
export type RangeOperator = '<' | '<=' | '>' | '>='

/**
 * A condition on the payload of a stored record.
 *
 * - `in` is true if the stored value, or an element of a stored array, is one of `values`.
 * - `all` is true if the stored value is an array that contains all `values`.
 * - `range` compares two numbers numerically. It compares two strings, or a number and a string, as strings by code
 *   point. It is false for other values.
 * - `type` is true if the stored value has that type. It is not part of the filter syntax of the API.
 *
 * All four are false if the record does not have the key. Such a record satisfies the negation of a condition.
 *
 * @see docs/http.md#filters
 */
export type Filter =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Filter[] }
  | { readonly kind: 'not'; readonly operand: Filter }
  | { readonly kind: 'in' | 'all'; readonly key: string; readonly values: readonly FilterValue[] }
  | {
      readonly kind: 'range'
      readonly key: string
      readonly operator: RangeOperator
      readonly bound: string | number
    }
  | { readonly kind: 'type'; readonly key: string; readonly type: StoredType }

export type StoredType = 'text' | 'number' | 'array'

const rangeOperators: ReadonlyMap<string, RangeOperator> = new Map([
  ['$lt', '<'],
  ['$lte', '<='],
  ['$gt', '>'],
  ['$gte', '>='],
])

/**
 * Parses a filter of the API. Returns `undefined` for `undefined` and `{}`, which match everything.
 *
 * Keys are flat: a dot is part of the name, and `__proto__` is an ordinary name. A name that starts with `$`
 * is an operator. Values are scalars. Objects and arrays as values are rejected, because not every driver stores
 * JSON in a canonical form that can be compared. `null` equals a stored null, but not a missing key. An empty
 * `$and` is always true; an empty `$or` or `$in` is always false.
 *
 * @param input  JSON value with at most `limits.filterDepth` levels of clauses and `limits.filterNodes`
 *               nodes. A node is a name (key or operator) or an element of a list.
 * @param field  name of the filter in the request, with which the path of an error starts
 * @param count  nodes of earlier filters that share a limit with this one; by default, a filter has its own limit
 * @throws validation_error  the message starts with the path, as in
 *                           `filter.$and.0.price: unknown operator '$foo'`
 * @see docs/http.md#filters
 */
export function parseFilter(
  input: unknown,
  field = 'filter',
  count: NodeCount = { nodes: 0, max: limits.filterNodes },
): Filter | undefined {
  if (input === undefined) return undefined
  const parsed = parseClause(input, { path: [field], depth: 1, count })
  return parsed.kind === 'and' && parsed.parts.length === 0 ? undefined : parsed
}

/** Number of nodes of filters, and the maximum. */
export interface NodeCount {
  nodes: number
  readonly max: number
}

/** Combines the defined filters with `and`. Returns `undefined` if all are undefined. */
export function joinFilters(...filters: readonly (Filter | undefined)[]): Filter | undefined {
  const parts = filters.filter(filter => filter !== undefined)
  return parts.length < 2 ? parts[0] : { kind: 'and', parts }
}

/** Returns true if a payload (parsed JSON) satisfies a filter. Ignores inherited properties. */
export type FilterMatcher = (payload: FilterPayload) => boolean

type FilterPayload = Readonly<Record<string, unknown>>

/** A filter on the value of one key. */
export type KeyCondition = Extract<Filter, { readonly key: string }>

/** Compiles a filter for use on many payloads. */
export function createMatcher(filter: Filter | undefined): FilterMatcher {
  if (filter === undefined) return () => true
  switch (filter.kind) {
    case 'and': {
      const parts = filter.parts.map(createMatcher)
      return payload => parts.every(matches => matches(payload))
    }
    case 'or': {
      const parts = filter.parts.map(createMatcher)
      return payload => parts.some(matches => matches(payload))
    }
    case 'not': {
      const matches = createMatcher(filter.operand)
      return payload => !matches(payload)
    }
    default: {
      const matches = createValueMatcher(filter)
      return payload => matches(storedValue(payload, filter.key))
    }
  }
}

/** Returns the conditions of a filter. */
export function* conditionsOf(filter: Filter): Generator<KeyCondition> {
  switch (filter.kind) {
    case 'and':
    case 'or':
      for (const part of filter.parts) yield* conditionsOf(part)
      return
    case 'not':
      yield* conditionsOf(filter.operand)
      return
    default:
      yield filter
  }
}

/**
 * Compiles a condition for use on many values of its key. A missing key has the value undefined.
 *
 * The time to match an `in` condition does not depend on its number of values.
 */
function createValueMatcher(condition: KeyCondition): (stored: unknown) => boolean {
  switch (condition.kind) {
    case 'in': {
      const values: ReadonlySet<unknown> = new Set(condition.values)
      return stored => isIn(values, stored)
    }
    case 'all':
      return stored => hasAll(stored, condition.values)
    case 'range':
      return stored => satisfiesRange(stored, condition.operator, condition.bound)
    case 'type':
      return stored => typeOf(stored) === condition.type
  }
}

/** Returns true if a payload satisfies a filter. */
export function matchesFilter(filter: Filter | undefined, payload: FilterPayload): boolean {
  return createMatcher(filter)(payload)
}

interface FilterPosition {
  readonly path: readonly (string | number)[]
  readonly depth: number
  readonly count: NodeCount
}

function parseClause(input: unknown, position: FilterPosition): Filter {
  if (position.depth > limits.filterDepth)
    throwInvalidFilter(position, `nested deeper than ${limits.filterDepth} clauses`)
  const parts = Object.entries(requireObject(input, position)).map(([name, operand]) => {
    const inner = childPosition(position, name)
    if (!name.startsWith('$')) return parseCondition(name, operand, inner)
    if (name === '$and' || name === '$or')
      return { kind: name === '$and' ? 'and' : 'or', parts: parseClauses(operand, inner) } as const
    if (name === '$not') return { kind: 'not', operand: parseClause(operand, withNextDepth(inner)) } as const
    return throwInvalidFilter(position, `unknown operator '${clipStep(name)}'`)
  })
  return parts.length === 1 ? parts[0]! : { kind: 'and', parts }
}

function parseClauses(operand: unknown, position: FilterPosition): Filter[] {
  return requireList(operand, position).map((part, index) =>
    parseClause(part, withNextDepth(childPosition(position, index))),
  )
}

function parseCondition(key: string, operand: unknown, position: FilterPosition): Filter {
  if (typeof operand !== 'object' || operand === null || Array.isArray(operand))
    return { kind: 'in', key, values: [parseScalar(operand, position)] }
  const parts = Object.entries(operand).map(([name, value]) => parseComparison(key, name, value, position))
  if (parts.length === 0) return throwInvalidFilter(position, 'has no operator')
  return parts.length === 1 ? parts[0]! : { kind: 'and', parts }
}

function parseComparison(key: string, name: string, operand: unknown, position: FilterPosition): Filter {
  const inner = childPosition(position, name)
  switch (name) {
    case '$eq':
      return { kind: 'in', key, values: [parseScalar(operand, inner)] }
    case '$ne':
      return { kind: 'not', operand: { kind: 'in', key, values: [parseScalar(operand, inner)] } }
    case '$in':
      return { kind: 'in', key, values: parseScalars(operand, inner) }
    case '$nin':
      return { kind: 'not', operand: { kind: 'in', key, values: parseScalars(operand, inner) } }
    case '$all':
      return { kind: 'all', key, values: parseScalars(operand, inner) }
  }
  const operator = rangeOperators.get(name)
  if (operator === undefined) return throwInvalidFilter(position, `unknown operator '${clipStep(name)}'`)
  const bound = parseScalar(operand, inner)
  if (typeof bound !== 'string' && typeof bound !== 'number')
    return throwInvalidFilter(inner, 'must be a number or a string')
  return { kind: 'range', key, operator, bound }
}

function parseScalars(operand: unknown, position: FilterPosition): FilterValue[] {
  return requireList(operand, position).map((value, index) =>
    parseScalar(value, childPosition(position, index)),
  )
}

function parseScalar(operand: unknown, position: FilterPosition): FilterValue {
  if (operand === null || typeof operand === 'string' || typeof operand === 'boolean') return operand
  if (typeof operand === 'number' && Number.isFinite(operand)) return operand
  return throwInvalidFilter(position, 'must be a string, a number, a boolean or null')
}

function requireList(operand: unknown, position: FilterPosition): readonly unknown[] {
  if (!Array.isArray(operand)) return throwInvalidFilter(position, 'must be an array')
  if (operand.length > position.count.max) return throwTooMany(position)
  return operand
}

function requireObject(input: unknown, position: FilterPosition): object {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    return throwInvalidFilter(position, 'must be an object')
  return input
}

/** Returns the position of a name or list element inside the given position, and counts it as a node. */
function childPosition(position: FilterPosition, step: string | number): FilterPosition {
  if (++position.count.nodes > position.count.max) throwTooMany(position)
  return { ...position, path: [...position.path, step] }
}

function withNextDepth(position: FilterPosition): FilterPosition {
  return { ...position, depth: position.depth + 1 }
}

function throwTooMany(position: FilterPosition): never {
  return throwInvalidFilter(position, `the filter has more than ${position.count.max} nodes`)
}

function throwInvalidFilter(position: FilterPosition, fact: string): never {
  throw new WbError('validation_error', `${position.path.map(clipStep).join('.')}: ${fact}`)
}

/** Shortens a path step for an error message, because keys can have any length. */
function clipStep(step: string | number): string {
  const text = String(step)
  return text.length > 64 ? `${text.slice(0, 64)}…` : text
}

/** Returns the value of a key of a payload; undefined if the key is missing. */
export function storedValue(payload: FilterPayload, key: string): unknown {
  return Object.hasOwn(payload, key) ? payload[key] : undefined
}

function isIn(values: ReadonlySet<unknown>, stored: unknown): boolean {
  return Array.isArray(stored) ? stored.some(element => values.has(element)) : values.has(stored)
}

function hasAll(stored: unknown, values: readonly FilterValue[]): boolean {
  return Array.isArray(stored) && values.every(value => includesValue(stored, value))
}

export function typeOf(value: unknown): StoredType | undefined {
  if (typeof value === 'string') return 'text'
  if (typeof value === 'number') return 'number'
  return Array.isArray(value) ? 'array' : undefined
}

function satisfiesRange(value: unknown, operator: RangeOperator, bound: string | number): boolean {
  if (typeof value === 'number' && typeof bound === 'number')
    return satisfiesOperator(operator, value - bound)
  if (typeof value !== 'number' && typeof value !== 'string') return false
  return satisfiesOperator(operator, compareCodePoints(String(value), String(bound)))
}

/**
 * Returns true if a difference satisfies an operator.
 *
 * @param difference  left value minus right value; NaN (the values cannot be compared) never satisfies an operator
 */
export function satisfiesOperator(operator: RangeOperator, difference: number): boolean {
  switch (operator) {
    case '<':
      return difference < 0
    case '<=':
      return difference <= 0
    case '>':
      return difference > 0
    case '>=':
      return difference >= 0
  }
}
