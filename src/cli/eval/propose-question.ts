import type { Client } from '../../client/client.ts'
import type { Agent } from '../../contract/agents.ts'
import { limits } from '../../contract/limits.ts'
import { openai } from '../../contract/openai.ts'
import type { PickedPassage } from './pick-passages.ts'

/**
 * Asks an agent for a question that a passage answers. The conversation is not stored.
 *
 * @returns one line; undefined if the answer is empty
 * @throws WbError  the model of the agent cannot answer
 */
export async function proposeQuestion(
  client: Client,
  { workspaceId, agentId }: Agent,
  { document, text }: PickedPassage,
  signal: AbortSignal,
): Promise<string | undefined> {
  const content = [
    'Write one question of a user that the passage below answers.',
    'Use the words of a user who does not know the passage, and do not mention the passage.',
    'Do not search. Reply with the question only.',
    `\nPassage of ${document}:\n\n${text}`,
  ].join('\n')
  const body = { model: agentId, messages: [{ role: 'user' as const, content }] }
  const { choices } = await client.call(openai.complete, { params: { workspaceId }, body }, { signal })
  const lines = (choices[0]?.message.content ?? '').split('\n').map(line => line.trim())
  const line = lines.find(line => line !== '')?.replace(/\s*\[\d+\]/g, '')
  return line?.replace(/^["“'](.*)["”']$/, '$1').slice(0, limits.searchTextChars) || undefined
}
