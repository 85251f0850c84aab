import type { Clock } from '../base/clock.ts'
import type { OwnResponse } from '../contract/route.ts'
import { callerOf, type Exchange, headersOf, holdReply, type Shared } from './exchange.ts'
import { withHeaders } from './headers.ts'
import { Reply } from './reply.ts'
import { type Controller, Outgoing, type OutgoingParts, streamHeaders } from './stream.ts'

const eventStream = 'text/event-stream'
/** Interval in milliseconds at which access to an idle stream is checked again. */
const askAgainMs = 15_000
/**
 * Headers that are copied from the library's response. The others belong to the connection or are set by this
 * runtime.
 */
const ofProtocol: readonly string[] = ['content-type', 'allow']

export interface OwnReply extends OwnResponse {
  /** Rejects if the caller would now be refused. */
  readonly stillAllowed: () => Promise<unknown>
}

/**
 * Returns the response of a protocol library with the headers of this runtime. An endless stream ends when
 * its reader disconnects or loses access, or when the runtime drains.
 *
 * @throws rate_limited  when the stream is endless and the caller has too many open
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

/** Forwards the bytes of a stream that a library produces. */
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
    // Not awaited: a library may be slow to stop, and holds no resources that must be released first.
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
