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
  description: Flags.string({ summary: 'purpose of the agent' }),
  prompt: Flags.string({ summary: 'system prompt', helpValue: 'TEXT' }),
  kb: Flags.string({
    char: 'k',
    multiple: true,
    summary: 'knowledge base name or ID; can be repeated [all]',
  }),
  tool: Flags.string({
    multiple: true,
    summary:
      'tool name or ID, or the name of an MCP server for all its current tools; can be repeated [all built-in tools]',
    helpValue: 'NAME',
  }),
  rule: Flags.string({
    multiple: true,
    summary:
      'rule for a tool, an MCP server, or all tool IDs that start with PREFIX (PREFIX*): allow, ask, deny, or always (allow even after reading documents); can be repeated',
    helpValue: 'NAME=RULE',
  }),
  llm: Flags.string({ summary: 'LLM service name or ID', helpValue: 'NAME' }),
  ...samplingFlags,
}

/**
 * Parses the values of `--rule NAME=RULE`. Returns undefined if there are none.
 *
 * @throws UsageError                     a value does not have this format, or NAME matches several tools
 * @throws WbError agent_tool_unresolved  no tool matches; suggests a similar name
 */
export async function parseToolRules(
  context: ResolveContext,
  workspaceId: string,
  values: readonly string[] | undefined,
): Promise<ToolRules | undefined> {
  if (values === undefined || values.length === 0) return undefined
  const rules = values.map(parseRuleFlag)
  const patterns = await resolveToolPatterns(
    context,
    workspaceId,
    rules.map(({ tool }) => tool),
  )
  return Object.fromEntries(rules.map(({ rule }, index) => [patterns[index]!, rule]))
}

function parseRuleFlag(value: string): { tool: string; rule: ToolRules[string] } {
  const [, tool = '', word] = /^(.+)=([a-z]+)$/.exec(value) ?? []
  const rule = parseRule(word)
  if (rule) return { tool, rule }
  throw new UsageError(`--rule ${value} is not NAME=RULE, where RULE is ${ruleWords.join(', ')}`, [
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
 * Finds an LLM service by ID or name, and returns its ID. Without `nameOrId`, selects the only service, or lets
 * the user choose; returns null if there are no services.
 *
 * @throws WbError llm_service_not_found
 * @throws UsageError  several services match
 */
export async function resolveLlmServiceId(
  context: ResolveContext,
  workspaceId: string,
  nameOrId?: string,
): Promise<string | null> {
  const request = { params: { workspaceId } }
  const all = await collect(context.client.items(llmServices.list, request))
  if (all.length === 0 && nameOrId === undefined) return null
  const candidates = all.map(row => ({ row: row.llmServiceId, id: row.llmServiceId, name: row.name }))
  const selectCommand = (name: string) => `--llm ${name}`
  return pickResource(candidates, nameOrId, { ...llmServiceKind, selectCommand }, context.promptForChoice)
}

/**
 * Returns the IDs of the specified knowledge bases in the same order; undefined if none are specified.
 *
 * @throws WbError knowledge_base_not_found  no knowledge base matches; suggests a similar name
 */
export async function resolveKnowledgeBaseIds(
  { client }: ResolveContext,
  workspaceId: string,
  namesOrIds: readonly string[] | undefined,
): Promise<string[] | undefined> {
  if (namesOrIds === undefined || namesOrIds.length === 0) return undefined
  const all = await listKnowledgeBases(client, workspaceId)
  const candidates = all.map(row => ({ row: row.knowledgeBaseId, id: row.knowledgeBaseId, name: row.name }))
  return Promise.all(
    namesOrIds.map(nameOrId => pickResource(candidates, nameOrId, knowledgeBaseKind, undefined)),
  )
}
