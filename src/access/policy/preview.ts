import { WbError } from '../../contract/errors.ts'
import type { PolicyPreview } from '../../contract/policy.ts'
import { policyIssues } from './check.ts'
import { compilePolicy, toApiFilter } from './compile.ts'
import type { ActingPrincipal } from './evaluate.ts'
import { parsePolicy } from './parse.ts'

/** Principal of a preview whose request does not specify one. It has no attributes. */
const anonymousPrincipal: ActingPrincipal = { id: '<unset>', attributes: {} }

/**
 * Returns the filter that a policy adds to a search, or the errors of the policy. Does not throw for an invalid
 * policy.
 *
 * @param principal  principal of the search; by default, a principal without attributes
 * @see docs/access.md#write-a-policy
 */
export function previewPolicy(
  { dsl, principalId = null }: { dsl: string; principalId?: string | null },
  principal: ActingPrincipal = anonymousPrincipal,
): PolicyPreview {
  const issues: PolicyPreview['issues'] = []
  try {
    const policy = parsePolicy(dsl)
    issues.push(...policyIssues(policy))
    const compiledFilter = toApiFilter(compilePolicy(policy, principal))
    return { ok: issues.length === 0, parseError: null, issues, compiledFilter, principalId }
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    const { hint } = error.facts
    const reply = { ok: false, parseError: error.message, issues, compiledFilter: null, principalId }
    return hint === undefined ? reply : { ...reply, parseHint: hint }
  }
}
