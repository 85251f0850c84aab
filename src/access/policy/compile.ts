import { ownerPayloadKey, sourcePayloadKey, statusPayloadKey } from '../../contract/fields.ts'
import type { Filter, RangeOperator } from '../../storage/filter.ts'
import { type ActingPrincipal, compareOperands, resolveOperand } from './evaluate.ts'
import { type Comparison, type Literal, type Operand, type Policy, policyError } from './parse.ts'

/**
 * A predicate in which the attributes of one principal are replaced with their values. It consists of conditions on
 * columns. A constant is always the whole predicate, never a part of it.
 */
export type CompiledPolicy =
  | { readonly kind: 'constant'; readonly value: boolean }
  | { readonly kind: 'and' | 'or'; readonly parts: readonly CompiledPolicy[] }
  | { readonly kind: 'not'; readonly inner: CompiledPolicy }
  /**
   * Comparison with an attribute that the principal does not have. Neither it nor its negation matches anything.
   */
  | {
      readonly kind: 'unknown'
      /** Column compared with the attribute for equality; null for other comparisons. */
      readonly column: string | null
    }
  | {
      readonly kind: 'compare'
      readonly column: string
      readonly op: Comparison
      readonly value: Literal
    }
  | { readonly kind: 'in' | 'contains'; readonly column: string; readonly values: readonly Literal[] }
  | { readonly kind: 'any'; readonly column: string; readonly value: Literal }

/**
 * Placeholder for an attribute that the principal does not have, for display only. The enforced filter does not match
 * any row, not even a row with this value.
 */
export const missingAttributePlaceholder = '\u0001__missing__'

const mirrored: Readonly<Record<Comparison, Comparison>> = {
  '=': '=',
  '<>': '<>',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
}
const operators = { '<>': '$ne', '<': '$lt', '<=': '$lte', '>': '$gt', '>=': '$gte' } as const
const always: CompiledPolicy = { kind: 'constant', value: true }
const never: CompiledPolicy = { kind: 'constant', value: false }
const unknown: CompiledPolicy = { kind: 'unknown', column: null }

/**
 * Compiles a predicate for one principal. The result matches the same rows as `evaluatePolicy`.
 *
 * @throws validation_error  when the predicate compares columns with each other, which filters cannot express
 * @see docs/access.md#write-a-policy
 */
export function compilePolicy(policy: Policy, principal: ActingPrincipal): CompiledPolicy {
  return resolveUnknown(compile(policy, principal))
}

function compile(policy: Policy, principal: ActingPrincipal): CompiledPolicy {
  switch (policy.kind) {
    case 'and':
    case 'or':
      return joinParts(
        policy.kind,
        policy.parts.map(part => compile(part, principal)),
      )
    case 'not':
      return negate(compile(policy.inner, principal))
    case 'compare':
      return comparison(policy, principal)
    case 'in': {
      const values = policy.values.map(literal)
      if (policy.operand.kind === 'column') return { kind: 'in', column: policy.operand.name, values }
      const searched = resolveOperand(policy.operand, principal)
      return searched === undefined
        ? unknown
        : constant(values.some(value => compareOperands(searched, '=', value)))
    }
    case 'any': {
      const { operand, column } = policy
      if (operand.kind === 'column')
        throw policyError(operand.position, 'a column cannot be searched for in another column')
      const value = resolveOperand(operand, principal)
      return value === undefined ? { kind: 'unknown', column } : { kind: 'any', column, value }
    }
    case 'contains':
      return { kind: 'contains', column: policy.column, values: policy.values.map(literal) }
  }
}

function comparison(
  { left, op, right }: Policy & { kind: 'compare' },
  principal: ActingPrincipal,
): CompiledPolicy {
  if (left.kind === 'column' && right.kind === 'column')
    throw policyError(left.position, 'a column cannot be compared with another column')
  if (left.kind === 'column')
    return compareColumn(left.name, op, resolveOperand(right as FixedOperand, principal))
  if (right.kind === 'column') return compareColumn(right.name, mirrored[op], resolveOperand(left, principal))
  const [leftValue, rightValue] = [resolveOperand(left, principal), resolveOperand(right, principal)]
  if (leftValue === undefined || rightValue === undefined) return unknown
  return constant(compareOperands(leftValue, op, rightValue))
}

type FixedOperand = Exclude<Operand, { kind: 'column' }>

function compareColumn(column: string, op: Comparison, value: Literal | undefined): CompiledPolicy {
  if (value === undefined) return { kind: 'unknown', column: op === '=' ? column : null }
  const isComparable = typeof value !== 'boolean' || op === '=' || op === '<>'
  return isComparable ? { kind: 'compare', column, op, value } : never
}

/**
 * Returns the negation. The negation of an unknown part is unknown, so an `and` or `or` with unknown parts is negated
 * part by part.
 */
function negate(compiled: CompiledPolicy): CompiledPolicy {
  if (compiled.kind === 'constant') return constant(!compiled.value)
  if (compiled.kind === 'unknown') return unknown
  const isJoined = compiled.kind === 'and' || compiled.kind === 'or'
  if (!isJoined || !hasUnknown(compiled)) return { kind: 'not', inner: compiled }
  return joinParts(compiled.kind === 'and' ? 'or' : 'and', compiled.parts.map(negate))
}

/**
 * Returns true if a part is unknown. A `not` never contains unknown parts, because `negate` is applied to the parts
 * instead.
 */
function hasUnknown(compiled: CompiledPolicy): boolean {
  if (compiled.kind === 'and' || compiled.kind === 'or') return compiled.parts.some(hasUnknown)
  return compiled.kind === 'unknown'
}

/**
 * Replaces unknown parts without a column with a constant that matches nothing. Call it only after all negations
 * are resolved.
 */
function resolveUnknown(compiled: CompiledPolicy): CompiledPolicy {
  if (compiled.kind === 'and' || compiled.kind === 'or')
    return joinParts(compiled.kind, compiled.parts.map(resolveUnknown))
  return compiled.kind === 'unknown' && compiled.column === null ? never : compiled
}

/** Joins parts, and omits redundant constants. A single part is returned as it is. */
function joinParts(kind: 'and' | 'or', parts: readonly CompiledPolicy[]): CompiledPolicy {
  const decisive = kind === 'or'
  const isConstant = (part: CompiledPolicy, value: boolean) =>
    part.kind === 'constant' && part.value === value
  if (parts.some(part => isConstant(part, decisive))) return constant(decisive)
  const conditions = parts.filter(part => !isConstant(part, !decisive))
  if (conditions.length === 0) return constant(!decisive)
  return conditions.length === 1 ? conditions[0]! : { kind, parts: conditions }
}

function literal(operand: Operand): Literal {
  if (operand.kind === 'literal') return operand.value
  throw policyError(operand.position, 'a list of values cannot contain a column')
}

function constant(value: boolean): CompiledPolicy {
  return value ? always : never
}

/**
 * Returns the compiled predicate in the filter language of the API, for display.
 *
 * @see docs/access.md#write-a-policy
 */
export function toApiFilter(compiled: CompiledPolicy): Record<string, unknown> {
  switch (compiled.kind) {
    case 'constant':
      return compiled.value ? {} : { _no_match: true }
    case 'and':
    case 'or':
      return { [`$${compiled.kind}`]: compiled.parts.map(toApiFilter) }
    case 'not':
      return { $not: toApiFilter(compiled.inner) }
    case 'unknown':
      return compiled.column === null
        ? toApiFilter(never)
        : { [compiled.column]: missingAttributePlaceholder }
    case 'compare': {
      const { column, op, value } = compiled
      return { [column]: op === '=' ? value : { [operators[op]]: value } }
    }
    case 'in':
      return { [compiled.column]: { $in: compiled.values } }
    case 'contains':
      return { [compiled.column]: { $all: compiled.values } }
    case 'any':
      return { [compiled.column]: compiled.value }
  }
}

/**
 * Keys of the payload of a row that contain a column. A row has at most one of them. Columns that are not listed are keys of
 * its metadata. Chunks have fields that their document does not have. They are not columns, because a policy must give
 * the same result for both.
 */
const payloadKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ['owner_id', [ownerPayloadKey]],
  ['owner_principal_id', [ownerPayloadKey]],
  ['source_filename', [sourcePayloadKey]],
  ['status', ['status', statusPayloadKey]],
  ['chunkIndex', []],
])

/**
 * Returns the filter that stores enforce. It is stricter than the displayed filter, because API filters also match
 * single elements of arrays, compare numbers with strings, and treat a missing value as unequal to everything.
 */
export function toFilter(compiled: CompiledPolicy): Filter {
  switch (compiled.kind) {
    case 'constant':
      return { kind: compiled.value ? 'and' : 'or', parts: [] }
    case 'and':
    case 'or':
      return { kind: compiled.kind, parts: compiled.parts.map(toFilter) }
    case 'not':
      return { kind: 'not', operand: toFilter(compiled.inner) }
    case 'unknown':
      return toFilter(never)
    default:
      return columnFilter(compiled)
  }
}

type ColumnCondition = Extract<CompiledPolicy, { kind: 'compare' | 'in' | 'contains' | 'any' }>

function columnFilter(condition: ColumnCondition): Filter {
  const { column } = condition
  const [key, ...otherKeys] = payloadKeys.get(column) ?? [column]
  if (key === undefined) return toFilter(never)
  if (otherKeys.length === 0) return keyFilter(condition, key)
  return { kind: 'or', parts: [key, ...otherKeys].map(other => keyFilter(condition, other)) }
}

/** Returns a filter that does not match rows without the key. */
function keyFilter(condition: ColumnCondition, key: string): Filter {
  switch (condition.kind) {
    case 'compare':
      return comparisonFilter(condition, key)
    case 'in':
      return scalarIn(key, condition.values)
    case 'contains':
      return { kind: 'all', key, values: condition.values }
    case 'any':
      return { kind: 'all', key, values: [condition.value] }
  }
}

function comparisonFilter({ op, value }: Extract<ColumnCondition, { kind: 'compare' }>, key: string): Filter {
  if (op === '=') return scalarIn(key, [value])
  if (typeof value === 'boolean') return scalarIn(key, [!value, null])
  const sameType: Filter = { kind: 'type', key, type: typeof value === 'number' ? 'number' : 'text' }
  if (op !== '<>')
    return {
      kind: 'and',
      parts: [sameType, { kind: 'range', key, operator: op as RangeOperator, bound: value }],
    }
  const other: Filter = { kind: 'not', operand: { kind: 'in', key, values: [value] } }
  return { kind: 'or', parts: [scalarIn(key, [null]), { kind: 'and', parts: [sameType, other] }] }
}

/** Returns a filter that matches if the stored value is one of the given values. Arrays never match. */
function scalarIn(key: string, values: readonly (Literal | null)[]): Filter {
  return {
    kind: 'and',
    parts: [
      { kind: 'not', operand: { kind: 'type', key, type: 'array' } },
      { kind: 'in', key, values },
    ],
  }
}
