import { type ToolRules, toolPermissions } from '../../contract/agents.ts'

type Rule = ToolRules[string]

/** Allows a tool after the agent has read text of documents or tools, too. */
const always = 'always'

/** Words that stand for rules on the command line. */
export const ruleWords: readonly string[] = [...toolPermissions, always]

/** Returns the rule of a word; undefined for any other word. */
export function ruleFrom(word: string | undefined): Rule | undefined {
  if (word === always) return { permission: 'allow', afterReading: 'allow' }
  const permission = toolPermissions.find(one => one === word)
  return permission && { permission }
}

export function wordOf({ permission, afterReading }: Rule): string {
  return permission === 'allow' && afterReading === 'allow' ? always : permission
}
