import type { AccessCase, AccessCases } from '../../config/read-access-cases.ts'
import { toActingPrincipal } from '../principals.ts'
import { builtInPolicy } from './base-policy.ts'
import { requirePolicy } from './check.ts'
import { policyColumns } from './document-fields.ts'
import { explainPolicy, type PolicyReason } from './explain.ts'

/** The result of a test case. It passed if `actual` is what the case expects. */
export interface AccessCaseResult {
  readonly actual: 'allow' | 'deny'
  readonly reasons: readonly PolicyReason[]
}

/**
 * Evaluates the test cases whose documents are in the file.
 *
 * @returns results in the order of the cases; undefined for a document in a knowledge base
 * @throws validation_error  the policy is invalid
 */
export function runAccessCases({
  policy: dsl,
  principals,
  cases,
}: AccessCases): (AccessCaseResult | undefined)[] {
  const source = dsl === null ? builtInPolicy : { dsl, policy: requirePolicy('policy', dsl) }
  return cases.map(({ principal, document }) => {
    if ('documentId' in document) return undefined
    const recorded = Object.hasOwn(principals, principal) ? principals[principal] : undefined
    const acting = toActingPrincipal(principal, recorded)
    const { isVisible, reasons } = explainPolicy(source, acting, columnsOf(document))
    return { actual: isVisible ? 'allow' : 'deny', reasons }
  })
}

function columnsOf({
  metadata,
  visibleTo,
  owner,
  file,
  status,
}: Exclude<AccessCase['document'], { documentId: string }>) {
  const { documentId, knowledgeBaseId, ...columns } = policyColumns({
    metadata,
    visibleTo,
    ownerPrincipalId: owner,
    sourceFilename: file,
    status,
    documentId: '',
    knowledgeBaseId: '',
  })
  return columns
}
