import { limits } from '../../contract/limits.ts'
import type { PolicySource } from './base-policy.ts'
import { type ActingPrincipal, ownProperty, type PolicyRow, resolveOperand, truthOf } from './evaluate.ts'
import type { Operand, Policy, PolicyCondition } from './parse.ts'

/** A value that a condition compares: a column of the document, or the ID or an attribute of the principal. */
export interface ComparedValue {
  /** As in the policy: `team`, `$principal.team` or `current_principal_id()`. */
  readonly name: string
  /** Null if it is missing. A long text or list is cut, and an object is empty. */
  readonly value: unknown
  /** True if the value is cut. */
  readonly isCut: boolean
  /** True if the document does not have the column, or the principal does not have the attribute. */
  readonly isMissing: boolean
}

/** A condition of a policy that contributes to its result. */
export interface PolicyReason {
  /** Text of the condition in the policy. */
  readonly text: string
  /** Position of the text in the policy, counted from 1. */
  readonly position: number
  readonly result: 'true' | 'false' | 'unknown'
  /** True if the policy negates the condition, so that it lets documents in when it is false. */
  readonly isNegated: boolean
  readonly values: readonly ComparedValue[]
}

export interface PolicyExplanation {
  readonly isVisible: boolean
  /**
   * If the row is visible, conditions that together make the policy true. Otherwise, the conditions of which some would
   * have to change. Contains the first conditions of a long policy.
   */
  readonly reasons: readonly PolicyReason[]
  /** Number of all these conditions. */
  readonly reasonsTotal: number
}

/** A condition that decides the result of a policy, with its text. */
interface DecidingCondition {
  readonly condition: PolicyCondition
  readonly text: string
  readonly isNegated: boolean
}

/** Evaluates a policy like `evaluatePolicy`, and returns the conditions that decide the result. */
export function decidePolicy(
  { dsl, policy }: PolicySource,
  principal: ActingPrincipal,
  row: PolicyRow,
): { isVisible: boolean; conditions: DecidingCondition[] } {
  const conditions = decidingConditions(policy, { principal, row, isNegated: false })
  return {
    isVisible: truthOf(policy, principal, row) === true,
    conditions: conditions.map(({ condition, isNegated }) => ({
      condition,
      text: dsl.slice(condition.position - 1, condition.end - 1),
      isNegated,
    })),
  }
}

/** Evaluates a policy like `evaluatePolicy`, and returns why it has this result, with the compared values. */
export function explainPolicy(
  source: PolicySource,
  principal: ActingPrincipal,
  row: PolicyRow,
): PolicyExplanation {
  const { isVisible, conditions } = decidePolicy(source, principal, row)
  const explained = conditions.slice(0, limits.policyReasonsMax)
  const reasons = explained.map(({ condition, text, isNegated }): PolicyReason => {
    const truth = truthOf(condition, principal, row)
    return {
      text,
      position: condition.position,
      result: truth === undefined ? 'unknown' : truth ? 'true' : 'false',
      isNegated,
      values: comparedValues(condition, principal, row),
    }
  })
  return { isVisible, reasons, reasonsTotal: conditions.length }
}

interface Evaluation {
  readonly principal: ActingPrincipal
  readonly row: PolicyRow
  readonly isNegated: boolean
}

/**
 * Returns the conditions that decide a predicate. To let a row in, a predicate must be true, or false if it is negated.
 * If it is, the parts that are so, too, decide it. If not, the parts that are not so decide it.
 */
function decidingConditions(
  policy: Policy,
  evaluation: Evaluation,
): { condition: PolicyCondition; isNegated: boolean }[] {
  const { principal, row, isNegated } = evaluation
  switch (policy.kind) {
    case 'and':
    case 'or': {
      const letsIn = (part: Policy) => truthOf(part, principal, row) === !isNegated
      const isLetIn = letsIn(policy)
      return policy.parts
        .filter(part => letsIn(part) === isLetIn)
        .flatMap(part => decidingConditions(part, evaluation))
    }
    case 'not':
      return decidingConditions(policy.inner, { ...evaluation, isNegated: !isNegated })
    default:
      return [{ condition: policy, isNegated }]
  }
}

function comparedValues(
  condition: PolicyCondition,
  principal: ActingPrincipal,
  row: PolicyRow,
): ComparedValue[] {
  const column = (name: string) => comparedValue(name, ownProperty(row, name))
  const operand = (compared: Operand): ComparedValue[] => {
    switch (compared.kind) {
      case 'literal':
        return []
      case 'column':
        return [column(compared.name)]
      case 'principalId':
        return [comparedValue('current_principal_id()', principal.id)]
      case 'attribute':
        return [comparedValue(`$principal.${compared.name}`, resolveOperand(compared, principal))]
    }
  }
  switch (condition.kind) {
    case 'compare':
      return [...operand(condition.left), ...operand(condition.right)]
    case 'in':
      return operand(condition.operand)
    case 'any':
      return [...operand(condition.operand), column(condition.column)]
    case 'contains':
      return [column(condition.column)]
  }
}

function comparedValue(name: string, value: unknown): ComparedValue {
  return { name, ...cutValue(value ?? null, limits.shownItems), isMissing: value === undefined }
}

/** Cuts texts and lists, and empties objects and the lists in lists, to limit the length of an explanation. */
function cutValue(value: unknown, itemsMax: number): Pick<ComparedValue, 'value' | 'isCut'> {
  if (typeof value === 'string')
    return { value: value.slice(0, limits.shownValueChars), isCut: value.length > limits.shownValueChars }
  if (typeof value !== 'object' || value === null) return { value, isCut: false }
  if (!Array.isArray(value)) return { value: {}, isCut: true }
  const items = value.slice(0, itemsMax).map(item => cutValue(item, 0))
  return {
    value: items.map(item => item.value),
    isCut: value.length > itemsMax || items.some(item => item.isCut),
  }
}
