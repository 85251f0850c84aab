import type { Filter, FilterOrder } from '../../storage/filter.ts'
import { type ActingPrincipal, compareOperands, resolveOperand } from './evaluate.ts'
import { type Comparison, type Literal, type Operand, type Policy, policyError } from './parse.ts'

/**
 * A predicate with the values of one principal: conditions on columns, and constants only at the top level.
 */
export type CompiledPolicy =
  | { readonly kind: 'constant'; readonly holds: boolean }
  | { readonly kind: 'and' | 'or'; readonly of: readonly CompiledPolicy[] }
  | { readonly kind: 'not'; readonly of: CompiledPolicy }
  /**
   * Comparison with an attribute that the principal lacks. It matches nothing, and neither does its negation.
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
 * Displayed placeholder for an attribute that the principal lacks. The enforced filter matches no row, not
 * even one with this value.
 */
export const missingAttributePlaceholder = '\u0001__missing__'

const flipped: Readonly<Record<Comparison, Comparison>> = {
  '=': '=',
  '<>': '<>',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
}
const operators = { '<>': '$ne', '<': '$lt', '<=': '$lte', '>': '$gt', '>=': '$gte' } as const
const always: CompiledPolicy = { kind: 'constant', holds: true }
const never: CompiledPolicy = { kind: 'constant', holds: false }
const unknown: CompiledPolicy = { kind: 'unknown', column: null }

/**
 * Compiles a predicate for one principal. The result agrees with `evaluatePolicy`.
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
        policy.of.map(part => compile(part, principal)),
      )
    case 'not':
      return negate(compile(policy.of, principal))
    case 'compare':
      return comparison(policy, principal)
    case 'in': {
      const values = policy.values.map(literal)
      if (policy.subject.kind === 'column') return { kind: 'in', column: policy.subject.name, values }
      const subject = resolveOperand(policy.subject, principal)
      return subject === undefined
        ? unknown
        : constant(values.some(value => compareOperands(subject, '=', value)))
    }
    case 'any': {
      const { subject, column } = policy
      if (subject.kind === 'column')
        throw policyError(subject.col, 'a column cannot be searched for in another column')
      const value = resolveOperand(subject, principal)
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
    throw policyError(left.col, 'a column cannot be compared with another column')
  if (left.kind === 'column')
    return compareColumn(left.name, op, resolveOperand(right as FixedOperand, principal))
  if (right.kind === 'column') return compareColumn(right.name, flipped[op], resolveOperand(left, principal))
  const [one, other] = [resolveOperand(left, principal), resolveOperand(right, principal)]
  return one === undefined || other === undefined ? unknown : constant(compareOperands(one, op, other))
}

type FixedOperand = Exclude<Operand, { kind: 'column' }>

function compareColumn(column: string, op: Comparison, value: Literal | undefined): CompiledPolicy {
  if (value === undefined) return { kind: 'unknown', column: op === '=' ? column : null }
  const hasOrder = typeof value !== 'boolean' || op === '=' || op === '<>'
  return hasOrder ? { kind: 'compare', column, op, value } : never
}

/** Returns the negation. Unknown parts stay unknown, so a list with unknown parts is negated part by part. */
function negate(compiled: CompiledPolicy): CompiledPolicy {
  if (compiled.kind === 'constant') return constant(!compiled.holds)
  if (compiled.kind === 'unknown') return unknown
  const isJoined = compiled.kind === 'and' || compiled.kind === 'or'
  if (!isJoined || !hasUnknown(compiled)) return { kind: 'not', of: compiled }
  return joinParts(compiled.kind === 'and' ? 'or' : 'and', compiled.of.map(negate))
}

/**
 * Returns true if a part is unknown. Negations have no unknown parts, because `negate` moves them inside.
 */
function hasUnknown(compiled: CompiledPolicy): boolean {
  if (compiled.kind === 'and' || compiled.kind === 'or') return compiled.of.some(hasUnknown)
  return compiled.kind === 'unknown'
}

/**
 * Replaces unknown parts without a column by a constant that matches nothing. Call it only after all
 * negations are resolved.
 */
function resolveUnknown(compiled: CompiledPolicy): CompiledPolicy {
  if (compiled.kind === 'and' || compiled.kind === 'or')
    return joinParts(compiled.kind, compiled.of.map(resolveUnknown))
  return compiled.kind === 'unknown' && compiled.column === null ? never : compiled
}

/** Joins parts without redundant constants. A single part is returned itself. */
function joinParts(kind: 'and' | 'or', parts: readonly CompiledPolicy[]): CompiledPolicy {
  const [empty, decided] = kind === 'and' ? [always, never] : [never, always]
  const isConstant = (part: CompiledPolicy, holds: CompiledPolicy) =>
    part.kind === 'constant' && part.holds === (holds === always)
  if (parts.some(part => isConstant(part, decided))) return decided
  const of = parts.filter(part => !isConstant(part, empty))
  if (of.length === 0) return empty
  return of.length === 1 ? of[0]! : { kind, of }
}

function literal(operand: Operand): Literal {
  if (operand.kind === 'literal') return operand.value
  throw policyError(operand.col, 'a list of values cannot contain a column')
}

function constant(holds: boolean): CompiledPolicy {
  return holds ? always : never
}

/**
 * Returns the compiled predicate in the filter language of the API, for display.
 *
 * @see docs/access.md#write-a-policy
 */
export function toApiFilter(compiled: CompiledPolicy): Record<string, unknown> {
  switch (compiled.kind) {
    case 'constant':
      return compiled.holds ? {} : { _no_match: true }
    case 'and':
    case 'or':
      return { [`$${compiled.kind}`]: compiled.of.map(toApiFilter) }
    case 'not':
      return { $not: toApiFilter(compiled.of) }
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
 * Returns the filter that stores enforce. It is stricter than the displayed one: API filters also match
 * single elements of arrays, order numbers among texts, and treat a missing value as unequal to everything.
 */
export function toFilter(compiled: CompiledPolicy): Filter {
  switch (compiled.kind) {
    case 'constant':
      return { kind: compiled.holds ? 'and' : 'or', of: [] }
    case 'and':
    case 'or':
      return { kind: compiled.kind, of: compiled.of.map(toFilter) }
    case 'not':
      return { kind: 'not', of: toFilter(compiled.of) }
    case 'unknown':
      return toFilter(never)
    case 'compare':
      return comparisonFilter(compiled)
    case 'in':
      return scalarIn(compiled.column, compiled.values)
    case 'contains':
      return { kind: 'all', key: compiled.column, values: compiled.values }
    case 'any':
      return { kind: 'all', key: compiled.column, values: [compiled.value] }
  }
}

function comparisonFilter({ column: key, op, value }: CompiledPolicy & { kind: 'compare' }): Filter {
  if (op === '=') return scalarIn(key, [value])
  if (typeof value === 'boolean') return scalarIn(key, [!value, null])
  const sameType: Filter = { kind: 'type', key, type: typeof value === 'number' ? 'number' : 'text' }
  if (op !== '<>')
    return { kind: 'and', of: [sameType, { kind: 'range', key, order: op as FilterOrder, bound: value }] }
  const other: Filter = { kind: 'not', of: { kind: 'in', key, values: [value] } }
  return { kind: 'or', of: [scalarIn(key, [null]), { kind: 'and', of: [sameType, other] }] }
}

/** Matches if the stored value itself is one of the values, not an element of it. */
function scalarIn(key: string, values: readonly (Literal | null)[]): Filter {
  return {
    kind: 'and',
    of: [
      { kind: 'not', of: { kind: 'type', key, type: 'array' } },
      { kind: 'in', key, values },
    ],
  }
}
