import type { Caller } from '../../access/caller.ts'
import { type AuthContext, subjectName } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import { WbError } from '../../contract/errors.ts'
import type { ServerEvent } from '../../contract/route.ts'
import type { StoredConversationKey } from './current-version.ts'

/** Maximum number of detached turns in a process, of one workspace, and of one sender. */
const turnsMax = 32
const turnsOfWorkspaceMax = 16
const turnsOfSenderMax = 8
/** Maximum size in bytes of the images of running turns of a process, and of one sender. */
const imageBytesMax = 100_000_000
const imageBytesOfSenderMax = 50_000_000
/** Maximum length of the events of one turn as JSON; a turn with more is stopped. */
const eventCharsMax = 2_000_000
/** Maximum time in milliseconds that a turn continues without a reader. */
const unreadMaxMs = 10 * 60_000
/** Time in milliseconds for which the events of a turn can be read after its end. */
const eventsStoredMs = 60_000
const retryAfterSeconds = 15
/** Minimum time in milliseconds between two checks of the sender's access. */
const accessCheckMs = 1_000

interface DetachedParts {
  readonly clock: Clock
  readonly log: Log
}

/** A turn to detach. */
interface DetachableTurn {
  readonly place: StoredConversationKey
  readonly sender: Pick<Caller, 'auth' | 'reauthorize' | 'requestId'>
  /** Size of the images of the question, which stay in memory without the request. */
  readonly imageBytes: number
  readonly events: AsyncIterable<TurnEvent>
  /** Stops the turn. */
  readonly leave: AbortController
}

/** A detached turn that is opened once there is room. */
interface OpenableTurn extends Omit<DetachableTurn, 'events'> {
  readonly open: () => Promise<AsyncIterable<TurnEvent>>
}

/** Properties of a detached turn that the limits depend on. */
interface CountedTurn {
  readonly place: StoredConversationKey
  readonly sender: string | null
  readonly imageBytes: number
}

/**
 * Turns of this process that continue when their reader disconnects. Their events are stored in memory until one
 * minute after the end, and each reader starts with the first event.
 *
 * @see docs/agents.md#continue-after-a-broken-connection
 */
export class DetachedTurns {
  readonly #parts: DetachedParts
  readonly #turns = new Set<DetachedTurn>()
  /** Turns that are about to start. */
  readonly #opening = new Set<CountedTurn>()

  constructor(parts: DetachedParts) {
    this.#parts = parts
  }

  /**
   * Opens a turn, runs it independently of its readers, and returns the first reader.
   *
   * @throws rate_limited  too many turns of the sender, of the workspace, or of all workspaces are running
   * @throws what `open` throws
   */
  async start({ open, ...turnParts }: OpenableTurn): Promise<AsyncIterable<ServerEvent>> {
    const { place, imageBytes } = turnParts
    const reservation = this.#reserve({ place, imageBytes, sender: subjectName(turnParts.sender.auth) })
    try {
      const events = await open()
      const turn = new DetachedTurn(this.#parts, { ...turnParts, events }, () => this.#turns.delete(turn))
      this.#turns.add(turn)
      return turn.read()
    } finally {
      this.#opening.delete(reservation)
    }
  }

  #reserve(reservation: CountedTurn): CountedTurn {
    const turnCount = () => this.#turns.size + this.#opening.size
    for (const turn of this.#turns) if (turn.isOver && turnCount() >= turnsMax) this.#turns.delete(turn)
    const running = [...[...this.#turns].filter(turn => !turn.isOver), ...this.#opening]
    const ofSender = running.filter(({ sender }) => sender === reservation.sender)
    const ofWorkspace = running.filter(({ place }) => place.workspaceId === reservation.place.workspaceId)
    if (
      turnCount() >= turnsMax ||
      ofSender.length >= turnsOfSenderMax ||
      ofWorkspace.length >= turnsOfWorkspaceMax ||
      (reservation.imageBytes > 0 &&
        (totalImageBytes([reservation, ...running]) > imageBytesMax ||
          totalImageBytes([reservation, ...ofSender]) > imageBytesOfSenderMax))
    )
      throw new WbError('rate_limited', 'too many detached turns are running', {
        hint: 'Wait until one has ended, or send without `detached`.',
        headers: { 'retry-after': String(retryAfterSeconds) },
      })
    this.#opening.add(reservation)
    return reservation
  }

  /**
   * Returns a reader of the last turn that a sender detached in a conversation.
   *
   * @throws not_found
   */
  read(place: StoredConversationKey, auth: AuthContext): AsyncIterable<ServerEvent> {
    return this.#find(place, auth).read()
  }

  /**
   * Stops the last turn that a sender detached in a conversation. The partial answer is stored.
   *
   * @throws not_found
   */
  async stop(place: StoredConversationKey, auth: AuthContext): Promise<void> {
    await this.#find(place, auth).stop()
  }

  /** Stops all turns, and waits until their partial answers are stored. */
  async close(): Promise<void> {
    await Promise.all([...this.#turns].map(turn => turn.stop()))
  }

  #find({ workspaceId, conversationId }: StoredConversationKey, auth: AuthContext): DetachedTurn {
    const name = subjectName(auth)
    const found = [...this.#turns].findLast(
      ({ place, sender }) =>
        sender === name && place.workspaceId === workspaceId && place.conversationId === conversationId,
    )
    if (found) return found
    throw new WbError('not_found', 'there is no detached turn of this caller in the conversation', {
      hint: 'Read the messages: the turn may have ended, or another process runs it.',
    })
  }
}

function totalImageBytes(turns: readonly CountedTurn[]): number {
  return turns.reduce((sum, { imageBytes }) => sum + imageBytes, 0)
}

class DetachedTurn implements CountedTurn {
  readonly place: StoredConversationKey
  readonly sender: string | null
  readonly imageBytes: number
  readonly #parts: DetachedParts
  readonly #leave: AbortController
  readonly #events: TurnEvent[] = []
  readonly #readers = new Set<TurnEventReader>()
  readonly #ended: Promise<void>
  #chars = 0
  #isOver = false
  #cancelUnreadTimer = () => {}

  /** @param onExpired  called when the events can no longer be read */
  constructor(
    parts: DetachedParts,
    { place, sender, imageBytes, events, leave }: DetachableTurn,
    onExpired: () => void,
  ) {
    this.place = place
    this.imageBytes = imageBytes
    this.sender = subjectName(sender.auth)
    this.#parts = parts
    this.#leave = leave
    this.#startUnreadTimer()
    this.#ended = this.#run(events, sender).finally(() => {
      this.#isOver = true
      // The model can still be answering a question that was not stored.
      this.#leave.abort()
      this.#cancelUnreadTimer()
      parts.clock.after(eventsStoredMs, onExpired)
      this.#wake()
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  read(): AsyncIterable<ServerEvent> {
    const reader = new TurnEventReader(this.#events, {
      isOver: () => this.#isOver,
      onRead: () => this.#addReader(reader),
      onLeave: () => this.#removeReader(reader),
    })
    return reader
  }

  async stop(): Promise<void> {
    this.#leave.abort()
    await this.#ended
  }

  async #run(events: AsyncIterable<TurnEvent>, sender: DetachableTurn['sender']): Promise<void> {
    const { clock, log } = this.#parts
    let confirmedAt = clock.now()
    try {
      for await (const event of events) {
        this.#add(event)
        if (clock.now() - confirmedAt < accessCheckMs) continue
        await sender.reauthorize()
        confirmedAt = clock.now()
      }
    } catch (error) {
      this.#leave.abort()
      const { requestId } = sender
      if (error instanceof WbError && error.status < 500)
        log.info({ requestId, reason: error.code }, 'a detached turn was stopped')
      else log.error({ requestId, error }, 'a detached turn failed')
    }
  }

  #add(event: TurnEvent): void {
    this.#events.push(event)
    this.#chars += JSON.stringify(event).length
    if (this.#chars > eventCharsMax) this.#leave.abort()
    this.#wake()
  }

  #wake(): void {
    for (const reader of this.#readers) reader.wake()
  }

  #addReader(reader: TurnEventReader): void {
    this.#readers.add(reader)
    this.#cancelUnreadTimer()
  }

  #removeReader(reader: TurnEventReader): void {
    this.#readers.delete(reader)
    if (this.#readers.size === 0 && !this.#isOver) this.#startUnreadTimer()
  }

  #startUnreadTimer(): void {
    this.#cancelUnreadTimer()
    this.#cancelUnreadTimer = this.#parts.clock.after(unreadMaxMs, () => this.#leave.abort())
  }
}

interface TurnEventSource {
  isOver(): boolean
  /** Called with the first read, and when the reader disconnects. */
  onRead(): void
  onLeave(): void
}

/** Reads events from the first one, and waits for new ones until the turn ends. */
class TurnEventReader implements AsyncIterableIterator<ServerEvent> {
  readonly #events: readonly TurnEvent[]
  readonly #source: TurnEventSource
  #at = 0
  #isClosed = false
  #wake = () => {}

  constructor(events: readonly TurnEvent[], source: TurnEventSource) {
    this.#events = events
    this.#source = source
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  wake(): void {
    this.#wake()
  }

  async next(): Promise<IteratorResult<ServerEvent>> {
    if (this.#at === 0 && !this.#isClosed) this.#source.onRead()
    while (!this.#isClosed && this.#at === this.#events.length && !this.#source.isOver())
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    const event = this.#isClosed ? undefined : this.#events[this.#at++]
    if (event) return { done: false, value: { id: '', ...event } }
    return this.return()
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#wake()
      this.#source.onLeave()
    }
    return { done: true, value: undefined }
  }
}
