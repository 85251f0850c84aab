import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { type Policy, parsePolicy } from './parse.ts'

/** A policy and its text. */
export interface PolicySource {
  readonly dsl: string
  readonly policy: Policy
}

const builtInDsl =
  "$principal.admin = 'true' OR current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)"

/** The policy of knowledge bases without an enabled policy. */
export const builtInPolicy: PolicySource = { dsl: builtInDsl, policy: parsePolicy(builtInDsl) }

/** Returns the text of the enabled policy of a knowledge base; null if the built-in policy applies. */
export function enabledPolicyDsl({
  policyDsl,
  policyEnabled,
}: Pick<KnowledgeBase, 'policyDsl' | 'policyEnabled'>): string | null {
  return policyEnabled ? policyDsl : null
}
