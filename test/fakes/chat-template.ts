/** A message in a request to a provider. */
export interface SentMessage {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: readonly { readonly id: string }[]
  readonly tool_call_id?: string
}

/**
 * Returns the reason for which a strict chat template rejects a request, or undefined. It allows one system
 * message, at the beginning; user and assistant alternate, starting with the user; the results of tool calls
 * follow in order; and no content is empty.
 *
 * @see https://huggingface.co/mistralai/Mistral-7B-Instruct-v0.3 (`chat_template`)
 */
export function templateProblem(messages: readonly SentMessage[]): string | undefined {
  const rest = messages[0]?.role === 'system' ? messages.slice(1) : [...messages]
  let pending: string[] = []
  let due = 'user'
  for (const [at, { role, content, tool_calls: calls, tool_call_id: id }] of rest.entries()) {
    if (pending.length > 0) {
      if (role !== 'tool' || id !== pending.shift()) return `message ${at}: a tool result is missing`
      continue
    }
    if (role !== due) return `message ${at}: ${role} instead of ${due}`
    if (!content && !calls) return `message ${at}: ${role} without content`
    if (calls) pending = calls.map(call => call.id)
    due = role === 'user' || calls ? 'assistant' : 'user'
  }
  if (pending.length > 0) return 'the last tool call has no result'
  const last = rest.at(-1)?.role
  return last === 'user' || last === 'tool' ? undefined : `the last message is of ${last}`
}
