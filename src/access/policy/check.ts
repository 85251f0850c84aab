import { WbError } from '../../contract/errors.ts'
import type { PolicyIssue } from '../../contract/policy.ts'
import { type Operand, type Policy, parsePolicy } from './parse.ts'

type Code = PolicyIssue['code']

const issueTexts: Readonly<Record<Code, { message: string; hint: string }>> = {
  row_to_row_comparison: {
    message: 'a column is compared with another column',
    hint: 'Compare a column with a value or with the principal.',
  },
  constant_only_comparison: {
    message: 'the comparison contains no column',
    hint: 'Use a column, or compare the principal with a value.',
  },
  row_in_value_position: {
    message: 'expected a value, but found a column',
    hint: 'Put single quotes around strings.',
  },
  in_subject_not_row: { message: 'expected a column before IN', hint: 'Write column IN (value, value).' },
  any_subject_is_row: {
    message: 'a column cannot be searched for in another column',
    hint: 'Write value = ANY(column), or current_principal_id() = ANY(column).',
  },
}

/** Returns issues for the parts of a parsed predicate that filters cannot express, or that do not depend on rows. */
export function policyIssues(policy: Policy): PolicyIssue[] {
  switch (policy.kind) {
    case 'and':
    case 'or':
      return policy.parts.flatMap(policyIssues)
    case 'not':
      return policyIssues(policy.inner)
    case 'compare':
      return comparisonIssues(policy)
    case 'in':
      return [
        ...(policy.operand.kind === 'column' ? [] : [issue('in_subject_not_row', policy.position)]),
        ...valueIssues(policy.values),
      ]
    case 'any':
      return policy.operand.kind === 'column' ? [issue('any_subject_is_row', policy.position)] : []
    case 'contains':
      return valueIssues(policy.values)
  }
}

/**
 * Parses a predicate, and checks that a filter can express it.
 *
 * @param field  path of the predicate in the body
 * @throws validation_error  when the predicate is invalid; the message names the field and the position:
 *   `policyDsl: col 7: expected …`
 */
export function requirePolicy(field: string, dsl: string): Policy {
  const fieldError = (message: string, hint?: string) =>
    new WbError('validation_error', `${field}: ${message}`, { hint })
  let policy: Policy
  try {
    policy = parsePolicy(dsl)
  } catch (error) {
    throw error instanceof WbError ? fieldError(error.message, error.facts.hint) : error
  }
  const [first] = policyIssues(policy)
  if (first) throw fieldError(first.message, first.hint)
  return policy
}

function comparisonIssues({ left, right, position }: Policy & { kind: 'compare' }): PolicyIssue[] {
  const columns = [left, right].filter(({ kind }) => kind === 'column').length
  if (columns === 2) return [issue('row_to_row_comparison', position)]
  return columns === 0 && left.kind === right.kind ? [issue('constant_only_comparison', position)] : []
}

function valueIssues(values: readonly Operand[]): PolicyIssue[] {
  return values
    .filter(({ kind }) => kind === 'column')
    .map(({ position }) => issue('row_in_value_position', position))
}

function issue(code: Code, position: number): PolicyIssue {
  const { message, hint } = issueTexts[code]
  return { code, message: `col ${position}: ${message}`, hint }
}
