import { type ToolRules, toolPermissions } from '../../contract/agents.ts'

type Rule = ToolRules[string]

/** Word for a rule that also allows a tool after the agent has read documents or tool results. */
const alwaysWord = 'always'

/** Rules on the command line. */
export const ruleWords: readonly string[] = [...toolPermissions, alwaysWord]

/** Returns the rule of a word; undefined for any other word. */
export function parseRule(word: string | undefined): Rule | undefined {
  if (word === alwaysWord) return { permission: 'allow', afterReading: 'allow' }
  const permission = toolPermissions.find(one => one === word)
  return permission && { permission }
}

export function formatRule({ permission, afterReading }: Rule): string {
  return permission === 'allow' && afterReading === 'allow' ? alwaysWord : permission
}
