import type { Caller } from '../../access/caller.ts'
import { type AuthContext, subjectName } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { TurnEvent } from '../../contract/chat.ts'
import { WbError } from '../../contract/errors.ts'
import type { ServerEvent } from '../../contract/route.ts'
import type { StoredConversationKey } from './current-version.ts'

/** Maximum number of detached turns: in this process (with those that ended recently), per workspace, and per sender. */
const turnsMax = 32
const turnsOfWorkspaceMax = 16
const turnsOfSenderMax = 8
/** Maximum total size in bytes of the images of running turns: in this process, and per sender. */
const imageBytesMax = 100_000_000
const imageBytesOfSenderMax = 50_000_000
/** Maximum total length of the events of one turn, as JSON. A turn that exceeds it is stopped. */
const eventCharsMax = 2_000_000
/** Maximum time in milliseconds for which a turn continues without a reader. */
const unreadMaxMs = 10 * 60_000
/** Time in milliseconds for which the events of a turn can be read after its end. */
const eventsStoredMs = 60_000
const retryAfterSeconds = 15
/** Minimum time in milliseconds between two checks of the sender's access. */
const accessCheckMs = 1_000

interface DetachedTurnsDependencies {
  readonly clock: Clock
  readonly log: Log
}

/** A turn to detach. */
interface DetachableTurn {
  readonly conversationKey: StoredConversationKey
  readonly sender: Pick<Caller, 'auth' | 'reauthorize' | 'requestId'>
  /** Size in bytes of the question's images, which stay in memory after the request has ended. */
  readonly imageBytes: number
  readonly events: AsyncIterable<TurnEvent>
  /** Returns true if a caller may see everything that the turn has read. */
  readonly isReadableBy: (reader: Pick<Caller, 'rowAccess'>) => Promise<boolean>
  /** Stops the turn. */
  readonly cancel: AbortController
}

/** A turn that is opened only after the limits have been checked. */
interface OpenableTurn extends Omit<DetachableTurn, 'events'> {
  readonly open: () => Promise<AsyncIterable<TurnEvent>>
}

/** Properties of a detached turn that the limits depend on. */
interface CountedTurn {
  readonly conversationKey: StoredConversationKey
  readonly sender: string | null
  readonly imageBytes: number
}

/**
 * Turns of this process that continue when their reader disconnects. Their events stay in memory until one minute after
 * the turn has ended, or until a new turn needs the place. Each reader starts with the first event.
 *
 * @see docs/agents.md#continue-after-a-broken-connection
 */
export class DetachedTurns {
  readonly #deps: DetachedTurnsDependencies
  readonly #turns = new Set<DetachedTurn>()
  /** Turns that are being opened. */
  readonly #openingTurns = new Set<CountedTurn>()

  constructor(deps: DetachedTurnsDependencies) {
    this.#deps = deps
  }

  /**
   * Opens a turn, runs it independently of its readers, and returns the first reader.
   *
   * @throws rate_limited  too many turns of the sender, of the workspace, or of all workspaces are running, or their
   *   images are too large
   * @throws the errors of `open`
   */
  async start({ open, ...detachedTurn }: OpenableTurn): Promise<AsyncIterable<ServerEvent>> {
    const { conversationKey, imageBytes } = detachedTurn
    const reservation = this.#reserve({
      conversationKey,
      imageBytes,
      sender: subjectName(detachedTurn.sender.auth),
    })
    try {
      const events = await open()
      const turn = new DetachedTurn(this.#deps, { ...detachedTurn, events }, () => this.#turns.delete(turn))
      this.#turns.add(turn)
      return turn.read()
    } finally {
      this.#openingTurns.delete(reservation)
    }
  }

  #reserve(reservation: CountedTurn): CountedTurn {
    const turnCount = () => this.#turns.size + this.#openingTurns.size
    // Oldest first.
    for (const turn of this.#turns) if (turn.isFinished && turnCount() >= turnsMax) this.#turns.delete(turn)
    const running = [...[...this.#turns].filter(turn => !turn.isFinished), ...this.#openingTurns]
    const turnsOfSender = running.filter(({ sender }) => sender === reservation.sender)
    const turnsOfWorkspace = running.filter(
      ({ conversationKey }) => conversationKey.workspaceId === reservation.conversationKey.workspaceId,
    )
    if (
      turnCount() >= turnsMax ||
      turnsOfSender.length >= turnsOfSenderMax ||
      turnsOfWorkspace.length >= turnsOfWorkspaceMax ||
      (reservation.imageBytes > 0 &&
        (totalImageBytes([reservation, ...running]) > imageBytesMax ||
          totalImageBytes([reservation, ...turnsOfSender]) > imageBytesOfSenderMax))
    )
      throw new WbError('rate_limited', 'too many detached turns are running', {
        hint: 'Wait until a turn has ended, or send the message without `detached`.',
        headers: { 'retry-after': String(retryAfterSeconds) },
      })
    this.#openingTurns.add(reservation)
    return reservation
  }

  /**
   * Returns a reader of the last turn that a sender detached in a conversation.
   *
   * @throws not_found  there is no such turn, or the sender may no longer see everything that it has read
   */
  async read(
    conversationKey: StoredConversationKey,
    sender: Pick<Caller, 'auth' | 'rowAccess'>,
  ): Promise<AsyncIterable<ServerEvent>> {
    const turn = this.#find(conversationKey, sender.auth)
    if (!(await turn.isReadableBy(sender))) throw noDetachedTurn()
    return turn.read()
  }

  /**
   * Stops the last turn that a sender detached in a conversation. The partial answer is stored.
   *
   * @throws not_found
   */
  async stop(conversationKey: StoredConversationKey, auth: AuthContext): Promise<void> {
    await this.#find(conversationKey, auth).stop()
  }

  /** Stops all turns, and waits until their partial answers are stored. */
  async close(): Promise<void> {
    await Promise.all([...this.#turns].map(turn => turn.stop()))
  }

  #find({ workspaceId, conversationId }: StoredConversationKey, auth: AuthContext): DetachedTurn {
    const name = subjectName(auth)
    const turn = [...this.#turns].findLast(
      ({ conversationKey, sender }) =>
        sender === name &&
        conversationKey.workspaceId === workspaceId &&
        conversationKey.conversationId === conversationId,
    )
    if (turn) return turn
    throw noDetachedTurn()
  }
}

function noDetachedTurn(): WbError {
  return new WbError('not_found', 'this caller has no detached turn in the conversation', {
    hint: 'The turn may have ended, or another process may be running it. Read the messages of the conversation.',
  })
}

function totalImageBytes(turns: readonly CountedTurn[]): number {
  return turns.reduce((sum, { imageBytes }) => sum + imageBytes, 0)
}

class DetachedTurn implements CountedTurn {
  readonly conversationKey: StoredConversationKey
  readonly sender: string | null
  readonly imageBytes: number
  readonly isReadableBy: DetachableTurn['isReadableBy']
  readonly #deps: DetachedTurnsDependencies
  readonly #cancel: AbortController
  readonly #events: TurnEvent[] = []
  readonly #readers = new Set<TurnEventReader>()
  readonly #finished: Promise<void>
  #chars = 0
  #isFinished = false
  #cancelUnreadTimer = () => {}

  /** @param onExpired  called when the events can no longer be read */
  constructor(
    deps: DetachedTurnsDependencies,
    { conversationKey, sender, imageBytes, isReadableBy, events, cancel }: DetachableTurn,
    onExpired: () => void,
  ) {
    this.conversationKey = conversationKey
    this.imageBytes = imageBytes
    this.isReadableBy = isReadableBy
    this.sender = subjectName(sender.auth)
    this.#deps = deps
    this.#cancel = cancel
    this.#startUnreadTimer()
    this.#finished = this.#run(events, sender).finally(() => {
      this.#isFinished = true
      // A model request can still be running if the question could not be stored.
      this.#cancel.abort()
      this.#cancelUnreadTimer()
      deps.clock.after(eventsStoredMs, onExpired)
      this.#wake()
    })
  }

  get isFinished(): boolean {
    return this.#isFinished
  }

  read(): AsyncIterable<ServerEvent> {
    const reader = new TurnEventReader(this.#events, {
      isFinished: () => this.#isFinished,
      onRead: () => this.#addReader(reader),
      onClose: () => this.#removeReader(reader),
    })
    return reader
  }

  async stop(): Promise<void> {
    this.#cancel.abort()
    await this.#finished
  }

  async #run(events: AsyncIterable<TurnEvent>, sender: DetachableTurn['sender']): Promise<void> {
    const { clock, log } = this.#deps
    let checkedAt = clock.now()
    try {
      for await (const event of events) {
        this.#add(event)
        if (clock.now() - checkedAt < accessCheckMs) continue
        await sender.reauthorize()
        checkedAt = clock.now()
      }
    } catch (error) {
      this.#cancel.abort()
      const { requestId } = sender
      if (error instanceof WbError && error.status < 500)
        log.info({ requestId, reason: error.code }, 'a detached turn was stopped')
      else log.error({ requestId, error }, 'a detached turn failed')
    }
  }

  #add(event: TurnEvent): void {
    this.#events.push(event)
    this.#chars += JSON.stringify(event).length
    if (this.#chars > eventCharsMax) this.#cancel.abort()
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
    if (this.#readers.size === 0 && !this.#isFinished) this.#startUnreadTimer()
  }

  #startUnreadTimer(): void {
    this.#cancelUnreadTimer()
    this.#cancelUnreadTimer = this.#deps.clock.after(unreadMaxMs, () => this.#cancel.abort())
  }
}

interface TurnEventSource {
  isFinished(): boolean
  /** Called at the first read. */
  onRead(): void
  /** Called when the reader disconnects, or has read all events. */
  onClose(): void
}

/** Reads events from the first one, and waits for new ones until the turn ends. */
class TurnEventReader implements AsyncIterableIterator<ServerEvent> {
  readonly #events: readonly TurnEvent[]
  readonly #source: TurnEventSource
  #nextIndex = 0
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
    if (this.#nextIndex === 0 && !this.#isClosed) this.#source.onRead()
    while (!this.#isClosed && this.#nextIndex === this.#events.length && !this.#source.isFinished())
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    const event = this.#isClosed ? undefined : this.#events[this.#nextIndex++]
    if (event) return { done: false, value: { id: '', ...event } }
    return this.return()
  }

  async return(): Promise<IteratorResult<ServerEvent>> {
    if (!this.#isClosed) {
      this.#isClosed = true
      this.#wake()
      this.#source.onClose()
    }
    return { done: true, value: undefined }
  }
}
