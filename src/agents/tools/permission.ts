import type { Agent, ToolPermission, ToolRules } from '../../contract/agents.ts'
import { namespacedId } from '../../contract/tool-ids.ts'

/**
 * Returns the permission that the rules of an agent give to a tool. The rule for the exact ID takes precedence, and
 * then the rule with the longest matching pattern. A rule that allows calls requires an approval after the model has
 * read untrusted text, unless the rule sets `afterReading`.
 *
 * @param hasReadUntrusted  true if the messages to the model can derive from text of documents or tools
 * @param fallback          permission if no rule matches
 */
export function permissionFor(
  rules: ToolRules,
  { id }: { readonly id: string },
  hasReadUntrusted: boolean,
  fallback: ToolPermission = 'allow',
): ToolPermission {
  const patterns = Object.keys(rules).filter(pattern => matchesPattern(pattern, id))
  const longestPattern = patterns.sort((a, b) => b.length - a.length)[0]
  const matchingPattern = Object.hasOwn(rules, id) ? id : longestPattern
  if (matchingPattern === undefined) return fallback
  const { permission, afterReading = permission === 'allow' ? 'ask' : permission } = rules[matchingPattern]!
  return hasReadUntrusted ? afterReading : permission
}

/**
 * Returns true if an agent can pass text of documents to a tool outside of the runtime without an approval. The address can
 * then come from the prompt of the agent.
 */
export function sendsWithoutApproval({
  toolIds,
  toolRules = {},
}: Pick<Agent, 'toolIds' | 'toolRules'>): boolean {
  return toolIds.some(
    id => namespacedId.test(id) && permissionFor(toolRules, { id }, true, 'ask') === 'allow',
  )
}

function matchesPattern(pattern: string, id: string): boolean {
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : pattern === id
}
