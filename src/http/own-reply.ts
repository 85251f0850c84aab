import type { Clock } from '../base/clock.ts'
import type { OwnResponse } from '../contract/route.ts'
import { callerOf, type Exchange, headersOf, holdReply, type Shared } from './exchange.ts'
import { withHeaders } from './headers.ts'
import { Reply } from './reply.ts'
import { type Controller, Outgoing, type OutgoingParts, streamHeaders } from './stream.ts'

const eventStream = 'text/event-stream'
/** How soon a stream in which nothing is told ends for a caller that may not read it any more. */
const askAgainMs = 15_000
/** What else a library sets is of the connection, or ours to say. */
const ofProtocol: readonly string[] = ['content-type', 'allow']

export interface OwnReply extends OwnResponse {
  /** Rejects when the caller would be refused now. */
  readonly stillAllowed: () => Promise<unknown>
}

/**
 * What the library of a protocol answers, as a response with our headers on it. An endless stream ends when its reader
 * goes away, loses the right to it, or the runtime drains.
 *
 * @throws rate_limited  it is endless, and the caller reads too many such already
 */
export async function ownReply(shared: Shared, current: Exchange, own: OwnReply): Promise<Reply> {
  const { incoming } = current
  const isCounted = own.isEndless && incoming.isFromOutside
  const countOff = isCounted ? shared.openStreams.open(callerOf(shared, current)) : () => {}
  let isStream = false
  try {
    const response = await own.answer(incoming.request)
    const { status, headers, body } = response
    const pairs = withHeaders(headersOf(shared, current, null), kept(headers))
    isStream = headers.get('content-type')?.startsWith(eventStream) ?? false
    if (body === null) return new Reply(status, pairs, null)
    if (!isStream) {
      const text = await response.text()
      holdReply(shared, current, text)
      return new Reply(status, pairs, text)
    }
    const { stillAllowed, isEndless } = own
    const parts = { shared, current, stillAllowed, countOff, endsOnDrain: isEndless }
    const passedOn = new PassedOn(shared.clock, body.getReader(), isEndless, parts)
    return new Reply(
      status,
      withHeaders(pairs, streamHeaders),
      new ReadableStream(passedOn, { highWaterMark: 0 }),
    )
  } finally {
    if (!isStream) countOff()
  }
}

function kept(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => ofProtocol.includes(name)))
}

/** The bytes of somebody's stream. */
class PassedOn extends Outgoing {
  #callOffAsking = () => {}

  constructor(
    private readonly clock: Clock,
    private readonly source: ReadableStreamDefaultReader<Uint8Array>,
    private readonly isEndless: boolean,
    parts: OutgoingParts,
  ) {
    super(parts)
    this.hold(() => this.#callOffAsking())
  }

  protected override begin(controller: Controller): void {
    if (this.isEndless) this.#askAgain(controller)
  }

  protected override async give(controller: Controller): Promise<void> {
    const { done, value } = await this.source.read()
    if (this.isEndless) await this.right.confirm()
    if (this.isOver) return
    if (done) this.close(controller)
    else controller.enqueue(value)
  }

  protected override letGo(): Promise<void> {
    // A library may take its time to stop, and has nothing to put away.
    this.source.cancel().catch(error => this.tell(error))
    return Promise.resolve()
  }

  #askAgain(controller: Controller): void {
    this.#callOffAsking = this.clock.after(askAgainMs, async () => {
      try {
        await this.right.confirm(true)
        if (!this.isOver) this.#askAgain(controller)
      } catch (error) {
        this.fail(controller, error)
      }
    })
  }
}
