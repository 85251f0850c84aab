import { compareCodePoints } from '../../base/compare-code-points.ts'
import { includesValue } from '../../base/includes-value.ts'
import { satisfiesOperator } from '../../storage/filter.ts'
import type { Comparison, Literal, Operand, Policy } from './parse.ts'

/** The principal for which a policy is evaluated. */
export interface ActingPrincipal {
  /** Null if the principal is not known. A comparison with it is unknown, like one with a missing attribute. */
  readonly id: string | null
  readonly attributes: Readonly<Record<string, string>>
}

/** A principal whose ID is known. */
export interface KnownPrincipal extends ActingPrincipal {
  readonly id: string
}

/** Columns of one row, as parsed JSON. */
export type PolicyRow = Readonly<Record<string, unknown>>

/**
 * Returns true if a predicate matches a row. A comparison with a missing column is false. A comparison with a
 * missing attribute of the principal is unknown, and so is its negation, so a missing attribute never grants
 * access.
 *
 * @see docs/access.md#write-a-policy
 */
export function evaluatePolicy(policy: Policy, principal: ActingPrincipal, row: PolicyRow): boolean {
  return truthOf(policy, principal, row) === true
}

/** Returns the result of a predicate; undefined if it is unknown. */
export function truthOf(policy: Policy, principal: ActingPrincipal, row: PolicyRow): boolean | undefined {
  const value = (operand: Operand) =>
    operand.kind === 'column' ? ownProperty(row, operand.name) : resolveOperand(operand, principal)
  const isMissingAttribute = (operand: Operand) => operand.kind !== 'column' && value(operand) === undefined
  switch (policy.kind) {
    case 'and':
    case 'or': {
      const decisive = policy.kind === 'or'
      const results = policy.parts.map(part => truthOf(part, principal, row))
      if (results.includes(decisive)) return decisive
      return results.includes(undefined) ? undefined : !decisive
    }
    case 'not': {
      const truth = truthOf(policy.inner, principal, row)
      return truth === undefined ? undefined : !truth
    }
    case 'compare': {
      if (isMissingAttribute(policy.left) || isMissingAttribute(policy.right)) return undefined
      return compareOperands(value(policy.left), policy.op, value(policy.right))
    }
    case 'in':
      if (isMissingAttribute(policy.operand)) return undefined
      return policy.values.some(entry => compareOperands(value(policy.operand), '=', value(entry)))
    case 'any':
      if (isMissingAttribute(policy.operand)) return undefined
      return hasAll(ownProperty(row, policy.column), [value(policy.operand)])
    case 'contains':
      return hasAll(ownProperty(row, policy.column), policy.values.map(value))
  }
}

/**
 * Returns the value of an operand that is not a column; undefined for an attribute that the principal does not have.
 */
export function resolveOperand(
  operand: Exclude<Operand, { kind: 'column' }>,
  { id, attributes }: ActingPrincipal,
): Literal | undefined {
  switch (operand.kind) {
    case 'literal':
      return operand.value
    case 'principalId':
      return id ?? undefined
    case 'attribute':
      return operand.name === 'id'
        ? (id ?? undefined)
        : (ownProperty(attributes, operand.name) as string | undefined)
  }
}

/**
 * Compares two values. If their types differ, all comparisons are false, except that null is unequal to values of other
 * types.
 */
export function compareOperands(left: unknown, op: Comparison, right: unknown): boolean {
  if (left === undefined || right === undefined) return false
  if (op === '=') return left === right
  if (op === '<>') return left !== right && (left === null || right === null || typeof left === typeof right)
  return satisfiesOperator(op, differenceOf(left, right))
}

/** Returns a number with the sign of `left` minus `right`; NaN if the values cannot be ordered. */
function differenceOf(left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right
  if (typeof left === 'string' && typeof right === 'string') return compareCodePoints(left, right)
  return Number.NaN
}

function hasAll(stored: unknown, values: readonly unknown[]): boolean {
  return Array.isArray(stored) && values.every(value => value !== undefined && includesValue(stored, value))
}

/** Returns a property of an object, but not of its prototype. */
export function ownProperty(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}
