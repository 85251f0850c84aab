import * as Flags from '@oclif/core/flags'
import { collect } from '../../client/client.ts'
import type { ToolRules } from '../../contract/agents.ts'
import { llmServices } from '../../contract/services.ts'
import { UsageError } from '../errors.ts'
import { parseRule, ruleWords } from '../fields/tool-rule.ts'
import {
  knowledgeBaseKind,
  listKnowledgeBases,
  pickResource,
  type ResolveContext,
  type ResourceKind,
} from '../find/resolve.ts'
import { resolveToolPatterns } from '../find/tool.ts'
import { samplingFlags } from './sampling-flags.ts'

/** Flags of `wb agents create` and `wb agents update`. */
export const agentFlags = {
  description: Flags.string({ summary: 'what the agent is for' }),
  prompt: Flags.string({ summary: 'system prompt', helpValue: 'TEXT' }),
  kb: Flags.string({
    char: 'k',
    multiple: true,
    summary: 'knowledge base, by name or ID; can be repeated [all]',
  }),
  tool: Flags.string({
    multiple: true,
    summary:
      'tool by name or ID, or a server for all of its current tools; can be repeated [all built-in tools]',
    helpValue: 'NAME',
  }),
  rule: Flags.string({
    multiple: true,
    summary:
      'permission for a tool, a server, or all IDs with a prefix (PREFIX*): allow, ask, deny or always; can be repeated',
    helpValue: 'NAME=WORD',
  }),
  llm: Flags.string({ summary: 'LLM service, by name or ID', helpValue: 'NAME' }),
  ...samplingFlags,
}

/**
 * Parses the rules of `--rule NAME=WORD`. Returns undefined if there are none.
 *
 * @throws UsageError                     a rule has another format, or its name matches several tools
 * @throws WbError agent_tool_unresolved  no tool matches; suggests a similar name
 */
export async function parseToolRules(
  context: ResolveContext,
  workspaceId: string,
  given: readonly string[] | undefined,
): Promise<ToolRules | undefined> {
  if (given === undefined || given.length === 0) return undefined
  const rules = given.map(ruleOf)
  const patterns = await resolveToolPatterns(
    context,
    workspaceId,
    rules.map(({ tool }) => tool),
  )
  return Object.fromEntries(rules.map(({ rule }, at) => [patterns[at]!, rule]))
}

function ruleOf(given: string): { tool: string; rule: ToolRules[string] } {
  const [, tool = '', word] = /^(.+)=([a-z]+)$/.exec(given) ?? []
  const rule = parseRule(word)
  if (rule) return { tool, rule }
  throw new UsageError(`--rule ${given} is not NAME=WORD, where WORD is ${ruleWords.join(', ')}`, [
    "--rule 'mcp:*=ask'",
  ])
}

const llmServiceKind: ResourceKind = {
  noun: 'LLM service',
  notFoundCode: 'llm_service_not_found',
  listCommand: 'wb services list',
  createCommands: ['wb services create'],
}

/**
 * Returns the ID of an LLM service by ID or name; without one, that of the only service or the user's
 * choice. Returns null if there is no service.
 *
 * @throws WbError llm_service_not_found
 * @throws UsageError  several services match
 */
export async function resolveLlmServiceId(
  context: ResolveContext,
  workspaceId: string,
  wanted?: string,
): Promise<string | null> {
  const request = { params: { workspaceId } }
  const all = await collect(context.client.items(llmServices.list, request))
  if (all.length === 0 && wanted === undefined) return null
  const named = all.map(row => ({ row: row.llmServiceId, id: row.llmServiceId, name: row.name }))
  const selectCommand = (name: string) => `--llm ${name}`
  return pickResource(named, wanted, { ...llmServiceKind, selectCommand }, context.promptForChoice)
}

/**
 * Returns the IDs of the named knowledge bases in order, or undefined if none is named.
 *
 * @throws WbError knowledge_base_not_found  no knowledge base matches; suggests a similar name
 */
export async function resolveKnowledgeBaseIds(
  { client }: ResolveContext,
  workspaceId: string,
  wanted: readonly string[] | undefined,
): Promise<string[] | undefined> {
  if (wanted === undefined || wanted.length === 0) return undefined
  const all = await listKnowledgeBases(client, workspaceId)
  const named = all.map(row => ({ row: row.knowledgeBaseId, id: row.knowledgeBaseId, name: row.name }))
  return Promise.all(wanted.map(one => pickResource(named, one, knowledgeBaseKind, undefined)))
}
