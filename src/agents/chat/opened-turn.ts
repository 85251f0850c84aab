import type { MessagePair, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { WbError } from '../../contract/errors.ts'
import { ProviderFailure } from '../../models/provider/provider-failure.ts'
import type { AgentTurn } from './agent-turn.ts'

/** A prepared turn that has not started yet. */
export interface OpenedTurn {
  readonly turn: AgentTurn
  /** Checks that the model can be called. @throws llm_credential_missing */
  readonly check: () => Promise<unknown>
}

/** Yields the events of a turn. If the turn could not be opened, yields the error as the only event. */
export async function* turnEventsOf(
  opened: WbError | OpenedTurn,
): AsyncGenerator<TurnEvent, void, undefined> {
  const turn =
    opened instanceof WbError ? opened : await opened.check().then(() => opened.turn, requireModelError)
  if (turn instanceof WbError) return yield streamError(turn)
  try {
    yield* turn.events()
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    yield streamError(error)
  }
}

function streamError({ code, message, status, hint }: WbError): TurnEvent {
  return { event: 'stream-error', data: { code, message, status, hint } }
}

/**
 * Returns the error if it means that the model cannot be called, for example because of its credential. Throws it
 * otherwise.
 *
 * @see docs/agents.md#over-http
 */
export function requireModelError(error: unknown): WbError {
  if (error instanceof WbError && error.code.startsWith('llm_') && error.status !== 404) return error
  throw error
}

/** Ignores a provider failure, because the turn fails in the same way and reports it in its answer. */
export function ignoreProviderFailure(error: unknown): void {
  if (!(error instanceof ProviderFailure)) throw error
}

/** Runs a turn to its end, and returns the question and the answer, which is partial if the turn was interrupted. */
export async function messagePairOf({ turn, check }: OpenedTurn, signal: AbortSignal): Promise<MessagePair> {
  await check()
  const messages = new Map<string, Message>()
  for await (const { event, data } of turn.events()) messages.set(event, data as Message)
  const assistant = messages.get('done') ?? messages.get('error') ?? turn.partialAnswer
  if (assistant) return { user: messages.get('user-message')!, assistant }
  signal.throwIfAborted()
  throw new Error('a turn ended without an answer')
}
