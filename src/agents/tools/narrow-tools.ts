import { terms } from '../../base/words.ts'
import type { Tool } from './tool.ts'

/** Maximum number of tools in one request. Hosted models reject more. */
export const toolsMax = 128

/** Weight of a word in a tool's name, relative to a word in its description. */
const nameWeight = 3

/**
 * Returns at most `toolsMax` tools, in their original order. Selects tools of the runtime first, and then the tools of
 * MCP servers whose names and descriptions contain the most words of the question. Rare words count more. Of tools with
 * equal scores, selects the first, so the result is deterministic.
 */
export function narrowTools(tools: readonly Tool[], question: string): readonly Tool[] {
  if (tools.length <= toolsMax) return tools
  const runtimeTools = tools.filter(tool => tool.source !== 'mcp').slice(0, toolsMax)
  const ranked = rankByWords(
    question,
    tools.filter(tool => tool.source === 'mcp'),
  )
  const selected = new Set([...runtimeTools, ...ranked.slice(0, toolsMax - runtimeTools.length)])
  return tools.filter(tool => selected.has(tool))
}

function rankByWords(question: string, tools: readonly Tool[]): Tool[] {
  const questionTerms = new Set(terms(question))
  const texts = tools.map(tool => ({ tool, ...wordsOf(tool) }))
  const toolCounts = new Map<string, number>()
  for (const { all } of texts)
    for (const word of all) if (questionTerms.has(word)) toolCounts.set(word, (toolCounts.get(word) ?? 0) + 1)
  const scoreOf = ({ all, name }: (typeof texts)[number]) =>
    [...questionTerms]
      .filter(word => all.has(word))
      .reduce((sum, word) => sum + rarity(word) * (name.has(word) ? nameWeight : 1), 0)
  const rarity = (word: string) => Math.log(1 + tools.length / toolCounts.get(word)!)
  return texts
    .map(text => ({ tool: text.tool, score: scoreOf(text) }))
    .sort((a, b) => b.score - a.score)
    .map(({ tool }) => tool)
}

/**
 * Returns the words of a tool: `name` contains those of its name and its server's label, `all` also those of its
 * description. A name such as `createIssue` is split into two words.
 */
function wordsOf({ id, description, serverLabel = '' }: Tool): { all: Set<string>; name: Set<string> } {
  const spacedName = id.replace(/^mcp:[^:]*:/, '').replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
  const name = terms(`${serverLabel} ${spacedName}`)
  return { all: new Set([...name, ...terms(description)]), name: new Set(name) }
}
