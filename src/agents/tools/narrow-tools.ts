import { terms } from '../../base/words.ts'
import type { Tool } from './tool.ts'

/** Maximum number of tools that hosted models accept in one request. */
export const toolsMax = 128

/** Weight of a word in the name of a tool, relative to its description. */
const nameWeight = 3

/**
 * Returns at most `toolsMax` tools, in their order. Tools of the runtime come before tools of MCP servers,
 * which are selected by the words of the question in their names and descriptions. Rare words count more.
 * Ties are resolved by the order, so the result is deterministic.
 */
export function narrowTools(tools: readonly Tool[], question: string): readonly Tool[] {
  if (tools.length <= toolsMax) return tools
  const own = tools.filter(tool => tool.source !== 'mcp').slice(0, toolsMax)
  const ranked = rankedBy(
    question,
    tools.filter(tool => tool.source === 'mcp'),
  )
  const kept = new Set([...own, ...ranked.slice(0, toolsMax - own.length)])
  return tools.filter(tool => kept.has(tool))
}

function rankedBy(question: string, tools: readonly Tool[]): Tool[] {
  const asked = new Set(terms(question))
  const texts = tools.map(tool => ({ tool, ...wordsOf(tool) }))
  const holding = new Map<string, number>()
  for (const { all } of texts)
    for (const word of all) if (asked.has(word)) holding.set(word, (holding.get(word) ?? 0) + 1)
  const scoreOf = ({ all, name }: (typeof texts)[number]) =>
    [...asked]
      .filter(word => all.has(word))
      .reduce((sum, word) => sum + rarity(word) * (name.has(word) ? nameWeight : 1), 0)
  const rarity = (word: string) => Math.log(1 + tools.length / holding.get(word)!)
  return texts
    .map(text => ({ tool: text.tool, score: scoreOf(text) }))
    .sort((a, b) => b.score - a.score)
    .map(({ tool }) => tool)
}

/** Returns all words of a tool, and those of its name and server. `createIssue` has two words. */
function wordsOf({ id, description, serverLabel = '' }: Tool): { all: Set<string>; name: Set<string> } {
  const spoken = id.replace(/^mcp:[^:]*:/, '').replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
  const name = terms(`${serverLabel} ${spoken}`)
  return { all: new Set([...name, ...terms(description)]), name: new Set(name) }
}
