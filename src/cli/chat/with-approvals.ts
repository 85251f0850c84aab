import type { Approval, TurnEvent } from '../../contract/chat.ts'
import { choose, type PromptStreams } from '../terminal/ask.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine, revealHidden } from '../terminal/terminal-text.ts'

type ApprovalRequest = Extract<TurnEvent, { event: 'tool-approval' }>['data']

interface WithApprovalsOptions {
  /** Starts the turn. The signal closes its connection. */
  send(signal: AbortSignal): AsyncGenerator<TurnEvent>
  /** Asks the user. The signal aborts when the decision is no longer needed. */
  ask(request: ApprovalRequest, expirySignal: AbortSignal): Promise<Approval['decision']>
  decide(approvalId: string, decision: Approval['decision']): Promise<void>
}

/**
 * Yields the events of a turn, and asks the user about tool calls that need an approval.
 *
 * @throws the errors of `ask` and `decide`, which end the turn
 */
export async function* withApprovals({ send, ask, decide }: WithApprovalsOptions): AsyncGenerator<TurnEvent> {
  const closeController = new AbortController()
  const events = send(closeController.signal)
  try {
    let nextEvent = events.next()
    for (let result = await nextEvent; !result.done; result = await nextEvent) {
      const { event, data } = result.value
      nextEvent = events.next()
      // Avoid an unhandled rejection if the stream fails while the user is asked.
      nextEvent.catch(() => {})
      if (event !== 'tool-approval') {
        yield result.value
        continue
      }
      const expiryController = new AbortController()
      const decisionSent = ask(data, expiryController.signal).then(decision =>
        decide(data.approvalId, decision),
      )
      // If another event arrives first, the decision is no longer needed.
      const expiry = nextEvent.then(
        () => expiryController.abort(),
        () => expiryController.abort(),
      )
      await Promise.race([decisionSent, expiry]).catch(error => {
        if (!expiryController.signal.aborted) throw error
      })
      decisionSent.catch(() => {})
    }
  } finally {
    closeController.abort()
    await events.return(undefined)
  }
}

/** Asks the user in the terminal whether a tool may run. Pressing only Enter denies the call. */
export async function askApproval(
  { arguments: argumentsJson, name }: { readonly arguments: string; readonly name: string },
  agent: string,
  { io, output }: { io: PromptStreams; output: Output },
  expirySignal: AbortSignal,
): Promise<Approval['decision']> {
  output.warn(`  ${plainLine(agent)} wants to use ${plainLine(name)} with`)
  for (const line of formatArguments(argumentsJson).split('\n')) output.warn(`    ${line}`)
  const choices = [
    { id: 'never', name: 'never' },
    { id: 'once', name: 'once' },
  ]
  return (await choose(io, 'allow this call?', choices, expirySignal)) as 'never' | 'once'
}

/** Formats the arguments of a tool call: indents JSON, and makes control characters visible. */
export function formatArguments(text: string): string {
  try {
    return revealHidden(JSON.stringify(JSON.parse(text), null, 2))
  } catch {
    return revealHidden(text)
  }
}
