import { type ToolRules, toolPermissions } from '../../contract/agents.ts'

type Rule = ToolRules[string]

/** Word for the rule that allows a tool even after the agent has read documents or tool results. */
const alwaysWord = 'always'

/** Words that represent rules on the command line. */
export const ruleWords: readonly string[] = [...toolPermissions, alwaysWord]

/** Returns the rule for a word; undefined for an unknown word. */
export function parseRule(word: string | undefined): Rule | undefined {
  if (word === alwaysWord) return { permission: 'allow', afterReading: 'allow' }
  const permission = toolPermissions.find(candidate => candidate === word)
  return permission && { permission }
}

export function formatRule({ permission, afterReading }: Rule): string {
  return permission === 'allow' && afterReading === 'allow' ? alwaysWord : permission
}
