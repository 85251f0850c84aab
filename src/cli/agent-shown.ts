import type { Agent } from '../contract/agents.ts'
import type { Conversation } from '../contract/conversations.ts'
import type { Fields } from './shown.ts'

/** The fields of an agent that a person reads. */
export function agentFields(agent: Agent): Fields {
  return {
    id: agent.agentId,
    name: agent.name,
    description: agent.description,
    prompt: agent.systemPrompt,
    'user prompt': agent.userPrompt,
    'LLM service': agent.llmServiceId ?? 'the chat provider of the runtime',
    'knowledge bases': agent.knowledgeBaseIds.join(', ') || 'all',
    tools: agent.toolIds.join(', ') || 'every built-in one',
    rerank: agent.rerankEnabled ? 'on' : 'off',
    created: { time: agent.createdAt },
    updated: { time: agent.updatedAt },
  }
}

/** The fields of a conversation that a person reads. */
export function conversationFields(conversation: Conversation, agent: string): Fields {
  return {
    id: conversation.conversationId,
    title: conversation.title,
    agent,
    'knowledge bases': conversation.knowledgeBaseIds.join(', ') || "the agent's",
    begun: { time: conversation.createdAt },
  }
}
