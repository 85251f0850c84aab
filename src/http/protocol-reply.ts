import type { Clock } from '../base/clock.ts'
import type { ProtocolResponse } from '../contract/route.ts'
import { type AppContext, callerKey, type Exchange, replyHeaders, reserveReply } from './exchange.ts'
import { replaceHeaders } from './headers.ts'
import { HttpReply } from './http-reply.ts'
import {
  OutgoingStream,
  type OutgoingStreamOptions,
  type StreamController,
  streamHeaders,
} from './outgoing-stream.ts'

const eventStreamType = 'text/event-stream'
/** Interval in milliseconds at which access to an endless stream is checked again. */
const recheckIntervalMs = 15_000
/**
 * Headers that are copied from the response of the protocol library. The other headers belong to the connection, or
 * the runtime sets them.
 */
const protocolHeaderNames: readonly string[] = ['content-type', 'allow']

export interface ProtocolReplyOptions extends ProtocolResponse {
  /** Rejects if the caller no longer has access. */
  readonly confirmAccess: () => Promise<unknown>
}

/**
 * Returns the response of a protocol library, with the common headers added. An endless stream ends when the
 * client disconnects or loses access, or when the runtime shuts down.
 *
 * @throws rate_limited  when the response is an endless stream and the caller has too many streams open
 */
export async function createProtocolReply(
  context: AppContext,
  exchange: Exchange,
  protocolResponse: ProtocolReplyOptions,
): Promise<HttpReply> {
  const { incoming } = exchange
  const isCounted = protocolResponse.isEndless && incoming.isFromOutside
  const releaseCount = isCounted ? context.openStreams.open(callerKey(context, exchange)) : () => {}
  let isStream = false
  try {
    const response = await protocolResponse.respond(incoming.request)
    const { status, headers, body } = response
    const pairs = replaceHeaders(replyHeaders(context, exchange, null), pickProtocolHeaders(headers))
    isStream = headers.get('content-type')?.startsWith(eventStreamType) ?? false
    if (body === null) return new HttpReply(status, pairs, null)
    if (!isStream) {
      const text = await response.text()
      reserveReply(context, exchange, text)
      return new HttpReply(status, pairs, text)
    }
    const { confirmAccess, isEndless } = protocolResponse
    const streamOptions = { context, exchange, confirmAccess, release: releaseCount, endsOnDrain: isEndless }
    const forwarded = new ForwardedStream(context.clock, body.getReader(), isEndless, streamOptions)
    return new HttpReply(
      status,
      replaceHeaders(pairs, streamHeaders),
      new ReadableStream(forwarded, { highWaterMark: 0 }),
    )
  } finally {
    if (!isStream) releaseCount()
  }
}

function pickProtocolHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => protocolHeaderNames.includes(name)))
}

/** Response body that forwards the stream of a protocol library. */
class ForwardedStream extends OutgoingStream {
  #cancelRecheck = () => {}

  constructor(
    private readonly clock: Clock,
    private readonly source: ReadableStreamDefaultReader<Uint8Array>,
    private readonly isEndless: boolean,
    streamOptions: OutgoingStreamOptions,
  ) {
    super(streamOptions)
    this.onEnd(() => this.#cancelRecheck())
  }

  protected override startTimers(controller: StreamController): void {
    if (this.isEndless) this.#recheckAccess(controller)
  }

  protected override async sendNext(controller: StreamController): Promise<void> {
    const { done, value } = await this.source.read()
    if (this.isEndless) await this.access.confirm()
    if (this.hasEnded) return
    if (done) this.close(controller)
    else controller.enqueue(value)
  }

  protected override releaseSource(): Promise<void> {
    // Not awaited, because a library may be slow to stop, and has no resources that must be released first.
    this.source.cancel().catch(error => this.report(error))
    return Promise.resolve()
  }

  #recheckAccess(controller: StreamController): void {
    this.#cancelRecheck = this.clock.after(recheckIntervalMs, async () => {
      try {
        await this.access.confirm(true)
        if (!this.hasEnded) this.#recheckAccess(controller)
      } catch (error) {
        this.fail(controller, error)
      }
    })
  }
}
