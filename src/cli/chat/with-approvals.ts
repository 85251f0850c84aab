import type { Approval, TurnEvent } from '../../contract/chat.ts'
import { choose, type PromptStreams } from '../terminal/ask.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine, revealHidden } from '../terminal/terminal-text.ts'

type ApprovalRequest = Extract<TurnEvent, { event: 'tool-approval' }>['data']

interface WithApprovalsOptions {
  /** Starts the turn. The signal closes its connection. */
  send(signal: AbortSignal): AsyncGenerator<TurnEvent>
  /** Asks the user. The signal aborts when the decision is no longer needed. */
  ask(request: ApprovalRequest, expired: AbortSignal): Promise<Approval['decision']>
  decide(approvalId: string, decision: Approval['decision']): Promise<void>
}

/**
 * Yields the events of a turn, and asks the user about tool calls that need an approval.
 *
 * @throws the errors of `ask` and `decide`, which end the turn
 */
export async function* withApprovals({ send, ask, decide }: WithApprovalsOptions): AsyncGenerator<TurnEvent> {
  const closing = new AbortController()
  const events = send(closing.signal)
  try {
    let next = events.next()
    for (let step = await next; !step.done; step = await next) {
      const { event, data } = step.value
      next = events.next()
      // Avoid an unhandled rejection if the stream fails while the user is asked.
      next.catch(() => {})
      if (event !== 'tool-approval') {
        yield step.value
        continue
      }
      const expired = new AbortController()
      const decided = ask(data, expired.signal).then(decision => decide(data.approvalId, decision))
      // The next event means that the decision is no longer needed.
      const expiry = next.then(
        () => expired.abort(),
        () => expired.abort(),
      )
      await Promise.race([decided, expiry]).catch(error => {
        if (!expired.signal.aborted) throw error
      })
      decided.catch(() => {})
    }
  } finally {
    closing.abort()
    await events.return(undefined)
  }
}

/** Asks in the terminal if a tool may run. Pressing only Enter denies the call. */
export async function askApproval(
  { arguments: argumentsJson, name }: { readonly arguments: string; readonly name: string },
  agent: string,
  { io, output }: { io: PromptStreams; output: Output },
  expired: AbortSignal,
): Promise<Approval['decision']> {
  output.warn(`  ${plainLine(agent)} wants to use ${plainLine(name)} with`)
  for (const line of formatArguments(argumentsJson).split('\n')) output.warn(`    ${line}`)
  const answers = [
    { id: 'never', name: 'never' },
    { id: 'once', name: 'once' },
  ]
  return (await choose(io, 'allow this call?', answers, expired)) as 'never' | 'once'
}

/** Indents JSON, and leaves other text unchanged. Makes control characters visible. */
export function formatArguments(text: string): string {
  try {
    return revealHidden(JSON.stringify(JSON.parse(text), null, 2))
  } catch {
    return revealHidden(text)
  }
}
