import type { ToolPermission, ToolRules } from '../../contract/agents.ts'

/**
 * Whether a tool may run without asking, by the rules of an agent. The longest pattern that fits decides, and an id
 * itself over any pattern.
 *
 * @param turn.afterReading  text of documents or of tools is in the turn
 * @param usual              where none fits
 */
export function permissionFor(
  rules: ToolRules,
  { id }: { readonly id: string },
  { afterReading }: { readonly afterReading: boolean },
  usual: ToolPermission = 'allow',
): ToolPermission {
  const patterns = Object.keys(rules).filter(pattern => fits(pattern, id))
  const longest = patterns.sort((a, b) => b.length - a.length)[0]
  const deciding = Object.hasOwn(rules, id) ? id : longest
  if (deciding === undefined) return usual
  const { permission, afterReading: stricter = permission === 'allow' ? 'ask' : permission } =
    rules[deciding]!
  return afterReading ? stricter : permission
}

function fits(pattern: string, id: string): boolean {
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : pattern === id
}
