import type { Approval, TurnEvent } from '../../contract/chat.ts'
import { choose, type PromptStreams } from '../terminal/ask.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine, revealed } from '../terminal/terminal-text.ts'

type Waiting = Extract<TurnEvent, { event: 'tool-approval' }>['data']

interface Approving {
  /** Begins the turn; the signal lets go of it. */
  send(signal: AbortSignal): AsyncGenerator<TurnEvent>
  /** Ask the person; the signal fires when it is too late. */
  ask(waiting: Waiting, late: AbortSignal): Promise<Approval['decision']>
  decide(approvalId: string, decision: Approval['decision']): Promise<void>
}

/**
 * A turn as it goes on, where a person is asked about the tools that must ask.
 *
 * @throws what `ask` and `decide` throw; it ends the turn
 */
export async function* approving({ send, ask, decide }: Approving): AsyncGenerator<TurnEvent> {
  const leaving = new AbortController()
  const events = send(leaving.signal)
  try {
    let next = events.next()
    for (let step = await next; !step.done; step = await next) {
      const { event, data } = step.value
      next = events.next()
      // It may fail while something else is waited for.
      next.catch(() => {})
      if (event !== 'tool-approval') {
        yield step.value
        continue
      }
      const late = new AbortController()
      const answered = ask(data, late.signal).then(decision => decide(data.approvalId, decision))
      // Who does not respond in time is not waited for.
      const isLate = next.then(
        () => late.abort(),
        () => late.abort(),
      )
      await Promise.race([answered, isLate]).catch(error => {
        if (!late.signal.aborted) throw error
      })
      answered.catch(() => {})
    }
  } finally {
    leaving.abort()
    await events.return(undefined)
  }
}

/** Ask on the terminal whether a tool may run; Enter alone is no leave. */
export async function askApproval(
  { arguments: given, name }: { readonly arguments: string; readonly name: string },
  agent: string,
  { io, output }: { io: PromptStreams; output: Output },
  late: AbortSignal,
): Promise<Approval['decision']> {
  output.warn(`  ${plainLine(agent)} wants to use ${plainLine(name)} with`)
  for (const line of pretty(given).split('\n')) output.warn(`    ${line}`)
  const answers = [
    { id: 'never', name: 'never' },
    { id: 'once', name: 'once' },
  ]
  return (await choose(io, 'may it run?', answers, late)) as 'never' | 'once'
}

/** JSON as a person reads it, other text as it is; fit for a terminal. */
export function pretty(text: string): string {
  try {
    return revealed(JSON.stringify(JSON.parse(text), null, 2))
  } catch {
    return revealed(text)
  }
}
