import type { ToolPermission, ToolRules } from '../../contract/agents.ts'

/**
 * Returns the permission of a tool by the rules of an agent. The exact ID takes precedence, then the longest
 * matching pattern.
 *
 * @param turn.afterReading  true if the turn contains text of documents or tools
 * @param usual              permission if no rule matches
 */
export function permissionFor(
  rules: ToolRules,
  { id }: { readonly id: string },
  { afterReading }: { readonly afterReading: boolean },
  usual: ToolPermission = 'allow',
): ToolPermission {
  const patterns = Object.keys(rules).filter(pattern => matchesPattern(pattern, id))
  const longest = patterns.sort((a, b) => b.length - a.length)[0]
  const deciding = Object.hasOwn(rules, id) ? id : longest
  if (deciding === undefined) return usual
  const { permission, afterReading: stricter = permission === 'allow' ? 'ask' : permission } =
    rules[deciding]!
  return afterReading ? stricter : permission
}

function matchesPattern(pattern: string, id: string): boolean {
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : pattern === id
}
