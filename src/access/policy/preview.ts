import { WbError } from '../../contract/errors.ts'
import type { PolicyPreview } from '../../contract/policy.ts'
import { issuesOf } from './check.ts'
import { compilePolicy, shown } from './compile.ts'
import type { ActingPrincipal } from './evaluate.ts'
import { parsePolicy } from './parse.ts'

/** Who acts in a preview that names nobody: has no attributes. */
const nobody: ActingPrincipal = { id: '<unset>', attributes: {} }

/**
 * What a policy makes of a search, or where it is wrong; never fails for what the policy says.
 *
 * @param principal  who acts; nobody when left out
 * @see docs/access.md#what-policies-say
 */
export function previewPolicy(
  { dsl, principalId = null }: { dsl: string; principalId?: string | null },
  principal: ActingPrincipal = nobody,
): PolicyPreview {
  const issues: PolicyPreview['issues'] = []
  try {
    const policy = parsePolicy(dsl)
    issues.push(...issuesOf(policy))
    const compiledFilter = shown(compilePolicy(policy, principal))
    return { ok: issues.length === 0, parseError: null, issues, compiledFilter, principalId }
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return { ok: false, parseError: error.message, issues, compiledFilter: null, principalId }
  }
}
