import type { AccessCases } from '../../config/read-access-cases.ts'
import { toActingPrincipal } from '../principals.ts'
import { builtInPolicy } from './base-policy.ts'
import { requirePolicy } from './check.ts'
import { policyColumns } from './document-fields.ts'
import { explainPolicy, type PolicyExplanation } from './explain.ts'

/**
 * Evaluates the test cases whose documents are in the file.
 *
 * @returns decisions in the order of the cases; undefined for a document in a knowledge base
 * @throws validation_error  the policy is invalid
 */
export function runAccessCases({
  policy: dsl,
  principals,
  cases,
}: AccessCases): (PolicyExplanation | undefined)[] {
  const source = dsl === null ? builtInPolicy : { dsl, policy: requirePolicy('policy', dsl) }
  return cases.map(({ principal, document }) => {
    if ('documentId' in document) return undefined
    const recorded = Object.hasOwn(principals, principal) ? principals[principal] : undefined
    const { metadata, visibleTo, owner, file, status } = document
    const columns = policyColumns({
      metadata,
      visibleTo,
      ownerPrincipalId: owner,
      sourceFilename: file,
      status,
    })
    return explainPolicy(source, toActingPrincipal(principal, recorded), columns)
  })
}
