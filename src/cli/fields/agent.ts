import type { Agent } from '../../contract/agents.ts'
import type { Attachment } from '../../contract/attachments.ts'
import type { Conversation } from '../../contract/conversations.ts'
import type { Fields } from './resources.ts'
import { formatToolName, lookUpName, type NamesById } from './tool-name.ts'
import { formatRule } from './tool-rule.ts'

/** Names of the resources that an agent uses. */
export interface AgentNames {
  /** Name of the LLM service, or its ID if it was deleted; undefined if the agent has none. */
  readonly llmService: string | undefined
  readonly knowledgeBases: NamesById
  readonly servers: NamesById
}

/** Returns the fields of an agent to show. Deleted resources are shown by ID. */
export function agentFields(agent: Agent, { llmService, knowledgeBases, servers }: AgentNames): Fields {
  const toolNames = agent.toolIds.map(id => formatToolName(id, servers))
  return {
    id: agent.agentId,
    name: agent.name,
    description: agent.description,
    prompt: agent.systemPrompt,
    'user prompt': agent.userPrompt,
    'LLM service': llmService ?? 'the chat provider of the runtime',
    'knowledge bases': formatNames(agent.knowledgeBaseIds, knowledgeBases) || 'all',
    tools: toolNames.join(', ') || 'all built-in tools',
    rules: formatRules(agent, servers) || 'all tools are allowed',
    rerank: agent.rerankEnabled ? 'on' : 'off',
    ...samplingFields(agent),
    created: { time: agent.createdAt },
    updated: { time: agent.updatedAt },
  }
}

/** Returns the sampling settings that the agent overrides. */
function samplingFields({ temperature, topP, reasoningEffort, stop }: Agent): Fields {
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { 'top-p': topP }),
    ...(reasoningEffort != null && { 'reasoning effort': reasoningEffort }),
    ...(stop != null && { stop: stop.join(', ') }),
  }
}

function formatRules({ toolRules = {} }: Agent, servers: NamesById): string {
  return Object.entries(toolRules)
    .map(([id, rule]) => `${formatToolName(id, servers)}=${formatRule(rule)}`)
    .join(', ')
}

/** Returns the fields of a conversation to show. */
export function conversationFields(
  conversation: Conversation,
  agent: string,
  bases: NamesById,
  attachments: readonly Attachment[],
): Fields {
  return {
    id: conversation.conversationId,
    title: conversation.title,
    agent,
    'knowledge bases': formatNames(conversation.knowledgeBaseIds, bases) || "the agent's",
    ...(attachments.length > 0 && { attachments: attachments.map(({ filename }) => filename).join(', ') }),
    started: { time: conversation.createdAt },
  }
}

function formatNames(ids: readonly string[], names: NamesById): string {
  return ids.map(id => lookUpName(names, id) ?? id).join(', ')
}
