import * as Flags from '@oclif/core/flags'
import { everything } from '../../client/client.ts'
import type { ToolRules } from '../../contract/agents.ts'
import { llmServices } from '../../contract/services.ts'
import { UsageError } from '../faults.ts'
import { everyBase, type Kind, knowledgeBaseKind, pick, type Resolving } from '../find/resolve.ts'
import { toolPatterns } from '../find/tool.ts'
import { ruleFrom, ruleWords } from '../shown/rule-word.ts'
import { samplingFlags } from './sampling-flags.ts'

/** What `create` and `update` say of an agent. */
export const agentFlags = {
  description: Flags.string({ summary: 'what it is for' }),
  prompt: Flags.string({ summary: 'how it is to answer: its system prompt', helpValue: 'TEXT' }),
  kb: Flags.string({
    char: 'k',
    multiple: true,
    summary: 'knowledge base, by name or id; may be given again [all of them]',
  }),
  tool: Flags.string({
    multiple: true,
    summary:
      'tool, by name or id, or a server, which is all that it offers now; may be given again [every built-in one]',
    helpValue: 'NAME',
  }),
  rule: Flags.string({
    multiple: true,
    summary:
      'rule for a tool or for all tools of a server: allow, ask, deny or always; an id may end in *; may be given again',
    helpValue: 'NAME=WORD',
  }),
  llm: Flags.string({ summary: 'LLM service, by name or id', helpValue: 'NAME' }),
  ...samplingFlags,
}

/**
 * The rules that are given as `NAME=WORD`; undefined where none is.
 *
 * @throws UsageError                     one is not in this form, or could be of several tools
 * @throws WbError agent_tool_unresolved  with what was probably meant
 */
export async function toolRules(
  resolving: Resolving,
  workspaceId: string,
  given: readonly string[] | undefined,
): Promise<ToolRules | undefined> {
  if (given === undefined || given.length === 0) return undefined
  const rules = given.map(ruleOf)
  const patterns = await toolPatterns(
    resolving,
    workspaceId,
    rules.map(({ tool }) => tool),
  )
  return Object.fromEntries(rules.map(({ rule }, at) => [patterns[at]!, rule]))
}

function ruleOf(given: string): { tool: string; rule: ToolRules[string] } {
  const [, tool = '', word] = /^(.+)=([a-z]+)$/.exec(given) ?? []
  const rule = ruleFrom(word)
  if (rule) return { tool, rule }
  throw new UsageError(`--rule ${given} is not NAME=WORD, where WORD is ${ruleWords.join(', ')}`, [
    "--rule 'mcp:*=ask'",
  ])
}

const llmServiceKind: Kind = {
  one: 'LLM service',
  code: 'llm_service_not_found',
  list: 'wb services list',
  create: ['wb services create'],
}

/**
 * The id of an LLM service: by id or name, else of the only one, or the one that the person chooses; null where there
 * is none.
 *
 * @throws WbError llm_service_not_found
 * @throws UsageError  several could be meant
 */
export async function llmServiceId(
  resolving: Resolving,
  workspaceId: string,
  wanted?: string,
): Promise<string | null> {
  const request = { params: { workspaceId } }
  const all = await everything(resolving.client.items(llmServices.list, request))
  if (all.length === 0 && wanted === undefined) return null
  const named = all.map(row => ({ row: row.llmServiceId, id: row.llmServiceId, name: row.name }))
  const naming = (name: string) => `--llm ${name}`
  return pick(named, wanted, { ...llmServiceKind, naming }, resolving.choose)
}

/**
 * The ids of knowledge bases that are named, in their order; undefined where none is.
 *
 * @throws WbError knowledge_base_not_found  with what was probably meant
 */
export async function knowledgeBaseIds(
  { client }: Resolving,
  workspaceId: string,
  wanted: readonly string[] | undefined,
): Promise<string[] | undefined> {
  if (wanted === undefined || wanted.length === 0) return undefined
  const all = await everyBase(client, workspaceId)
  const named = all.map(row => ({ row: row.knowledgeBaseId, id: row.knowledgeBaseId, name: row.name }))
  return Promise.all(wanted.map(one => pick(named, one, knowledgeBaseKind, undefined)))
}
