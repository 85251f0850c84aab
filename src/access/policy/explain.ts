import { type ActingPrincipal, ownProperty, type PolicyRow, resolveOperand, truthOf } from './evaluate.ts'
import type { Operand, Policy, PolicyCondition } from './parse.ts'

/** A value that a condition compares: a column of the document, or the ID or an attribute of the principal. */
export interface ComparedValue {
  /** As in the policy: `team`, `$principal.team` or `current_principal_id()`. */
  readonly name: string
  /** Null if it is missing. */
  readonly value: unknown
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
  /** True if the policy negates the condition, so that it contributes to visibility when it is false. */
  readonly isNegated: boolean
  readonly values: readonly ComparedValue[]
}

export interface PolicyExplanation {
  readonly isVisible: boolean
  /**
   * If the row is visible, conditions that together make the policy true. Otherwise, all conditions of which at least
   * one would have to change.
   */
  readonly reasons: readonly PolicyReason[]
}

/** Evaluates a policy like `evaluatePolicy`, and returns the conditions that decide the result. */
export function explainPolicy(
  { dsl, policy }: { dsl: string; policy: Policy },
  principal: ActingPrincipal,
  row: PolicyRow,
): PolicyExplanation {
  const isVisible = truthOf(policy, principal, row) === true
  const explained = decisiveConditions(policy, { principal, row, isNegated: false })
  const reasons = explained.map(({ condition, isNegated }): PolicyReason => {
    const { position, end } = condition
    const truth = truthOf(condition, principal, row)
    return {
      text: dsl.slice(position - 1, end - 1),
      position,
      result: truth === undefined ? 'unknown' : truth ? 'true' : 'false',
      isNegated,
      values: comparedValues(condition, principal, row),
    }
  })
  return { isVisible, reasons }
}

interface Evaluation {
  readonly principal: ActingPrincipal
  readonly row: PolicyRow
  readonly isNegated: boolean
}

/**
 * Returns the conditions that determine the result of a predicate. A predicate contributes to visibility if it is true, or
 * if it is false and negated. Its result is determined by the parts with the same contribution.
 */
function decisiveConditions(
  policy: Policy,
  evaluation: Evaluation,
): { condition: PolicyCondition; isNegated: boolean }[] {
  const { principal, row, isNegated } = evaluation
  switch (policy.kind) {
    case 'and':
    case 'or': {
      const contributes = (part: Policy) => truthOf(part, principal, row) === !isNegated
      const isContributing = contributes(policy)
      return policy.parts
        .filter(part => contributes(part) === isContributing)
        .flatMap(part => decisiveConditions(part, evaluation))
    }
    case 'not':
      return decisiveConditions(policy.inner, { ...evaluation, isNegated: !isNegated })
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
  return { name, value: value ?? null, isMissing: value === undefined }
}
