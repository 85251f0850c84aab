import type { Clock } from '../../base/clock.ts'
import { pause } from '../../base/pause.ts'
import type { ChatMachine } from '../../cli/chat/chat-interfaces.ts'
import { citationSource } from '../../cli/chat/citation-source.ts'
import type { ChatPort } from '../../cli/chat/port.ts'
import { toolDisplayName } from '../../cli/chat/tool-name.ts'
import { reportOf } from '../../cli/command/report.ts'
import type { CopiedBy } from '../../cli/terminal/clipboard.ts'
import { formatCounted } from '../../cli/terminal/output.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Citation, TurnEvent } from '../../contract/chat.ts'
import { isUnavailable } from '../parts/is-unavailable.ts'
import type { Size } from '../parts/terminal-session.ts'
import { chooseByName, listLastVersions, loadChoicePanel, typableNames } from './choices.ts'
import { followTurn, isNotFound } from './follow-turn.ts'
import { SUGGESTIONS_MAX, suggestedQuestions } from './greeting.ts'
import { loadUsedPassages } from './load-used-passages.ts'
import { passagePanel } from './panel.ts'
import { stepChat } from './state.ts'
import { questionOf } from './turn.ts'
import type {
  ChatEffect,
  ChatEvent,
  ChatFailure,
  ChatPanel,
  ChatState,
  ResumeEffect,
  TranscriptPart,
} from './types.ts'

/** Dependencies and callbacks of {@link Chat}. */
export interface ChatRunnerOptions {
  readonly port: ChatPort
  readonly machine: ChatMachine
  readonly clock: Clock
  /** Receives the parts of the conversation, in order. */
  onPrint(printed: TranscriptPart): void
  /** Called after each event. */
  onChange(event: ChatEvent): void
  onRedraw(): void
  onLeave(): void
}

/** A turn whose events are being read. */
interface TurnReading {
  /** Disconnects from the turn. */
  readonly controller: AbortController
  /** True once the runtime has stored the question; only then can the turn be stopped. */
  isStored: boolean
  /** True once the user has stopped the turn. */
  isStopped: boolean
  /** Resolves when the events are no longer read. */
  ended: Promise<void>
}

/** Opens the event stream of a turn. Calls `disconnect` if there is no turn to read. */
type OpenTurn = (signal: AbortSignal, disconnect: () => void) => AsyncIterable<TurnEvent>

/** Maximum time to wait on exit for the runtime to stop a turn. */
const STOP_WAIT_MAX_MS = 2_000
const RETRY_FIRST_MS = 500
const RETRY_MAX_MS = 10_000
/** Time between two ticks while work is in progress. */
const TICK_MS = 100

/** Runs a chat: applies events to its state, and runs the effects that they cause. */
export class Chat {
  #state: ChatState
  #reading: TurnReading | undefined
  /** Resolves when the runtime has stopped the turn. */
  #stopping: Promise<void> = Promise.resolve()
  #outageWait: AbortController | undefined
  #fileTask: AbortController | undefined
  #isTicking = false

  constructor(
    state: ChatState,
    private readonly parts: ChatRunnerOptions,
  ) {
    this.#state = state
  }

  get state(): ChatState {
    return this.#state
  }

  dispatch(event: ChatEvent): void {
    const nowMs = this.parts.clock.now()
    const [timed] = stepChat(this.#state, { type: 'tick', nowMs })
    const [state, effects] = stepChat(timed, event)
    this.#state = state
    for (const effect of effects) this.#run(effect)
    this.#tick()
    this.parts.onChange(event)
  }

  /** Changes the size of the screen without calling `onChange`. */
  resize(size: Size): void {
    this.#state = stepChat(this.#state, { type: 'resized', size })[0]
  }

  /** Loads the questions that an empty chat suggests. */
  loadSuggestions(): void {
    void this.#loadSuggestions()
  }

  /** Shows the conversation of the port, and continues to read a turn that is still running in it. */
  async resume(title: string): Promise<void> {
    const { port } = this.parts
    const [messages, knowledgeBases] = await Promise.all([port.messages(), port.knowledgeBasesInUse()])
    this.dispatch({ type: 'resumed', messages, title, knowledgeBases })
    const answeredQuestions = messages.filter((_, at) => messages[at + 1]?.role === 'agent')
    const exceptIds = answeredQuestions.map(({ messageId }) => messageId)
    this.#run({ type: 'resume', exceptIds })
  }

  /** Disconnects. Waits up to 2 seconds for a turn that the user has stopped; other turns continue in the runtime. */
  async close(): Promise<void> {
    this.#outageWait?.abort()
    this.#fileTask?.abort()
    const reading = this.#reading
    if (reading?.isStopped && !reading.isStored) this.#stopping = this.#stopTurn(reading)
    reading?.controller.abort()
    const stopped = new AbortController()
    await Promise.race([
      this.#stopping.finally(() => stopped.abort()),
      pause(STOP_WAIT_MAX_MS, stopped.signal),
    ])
  }

  #tick(): void {
    const { turn, outage, fileTask } = this.#state
    if (this.#isTicking || (!turn && !outage && !fileTask)) return
    this.#isTicking = true
    this.parts.clock.after(TICK_MS, () => {
      this.#isTicking = false
      this.dispatch({ type: 'tick', nowMs: this.parts.clock.now() })
    })
  }

  #run(effect: ChatEffect): void {
    const { port, machine, onPrint } = this.parts
    switch (effect.type) {
      case 'print':
        onPrint(effect.printed)
        break
      case 'send':
        this.#startReading(signal => port.send(effect.message, signal))
        break
      case 'resume':
        this.#startReading((signal, leave) => this.#resumeTurn(effect, signal, leave))
        break
      case 'abort':
        this.#stop()
        break
      case 'decide':
        this.#runOrReport(() => port.decide(effect.approvalId, effect.decision))
        break
      case 'wait':
        void this.#waitForRuntime()
        break
      case 'stopWaiting':
        this.#outageWait?.abort()
        break
      case 'find':
        this.#runOrReport(async () =>
          this.dispatch({ type: 'passagesFound', passages: await port.findPassages(effect.question) }),
        )
        break
      case 'openPassage':
        this.#runOrReport(() => this.#openPassage(effect.citation, effect.knownText))
        break
      case 'readImage':
        this.#runFileTask(async signal => {
          const image = await machine.readImage(effect.path)
          if (!signal.aborted) this.dispatch({ type: 'imageRead', image })
        })
        break
      case 'attachFile':
        this.#runFileTask(async signal => {
          const { filename, textChars } = await port.attachFile(await machine.readFile(effect.path), signal)
          this.#printNote(`attached ${plainLine(filename)}, ${formatCounted(textChars, 'character')}`)
        })
        break
      case 'stopFileTask':
        this.#fileTask?.abort()
        break
      case 'openAttachments':
        this.#runOrReport(() => this.#openAttachments())
        break
      case 'loadSuggestions':
        void this.#loadSuggestions()
        break
      case 'openTools':
        this.#runOrReport(() => this.#openTools())
        break
      case 'openChoices':
        this.#runOrReport(async () =>
          this.#openPanel(await loadChoicePanel(port, effect.purpose, this.#state, effect.search)),
        )
        break
      case 'choose':
        this.#runOrReport(async () => {
          const panel = chooseByName(effect.typed, await loadChoicePanel(port, effect.purpose, this.#state))
          this.dispatch({ type: 'itemsChosen', panel })
        })
        break
      case 'loadNames':
        this.#runOrReport(async () => {
          const names = typableNames(await loadChoicePanel(port, effect.purpose, this.#state))
          this.dispatch({ type: 'namesLoaded', purpose: effect.purpose, names })
        })
        break
      case 'useKnowledgeBases':
        this.#runOrReport(async () => {
          await port.useKnowledgeBases(effect.chosen.map(({ id }) => id))
          this.dispatch({ type: 'basesChanged', knowledgeBases: effect.chosen.map(({ name }) => name) })
        })
        break
      case 'useVersion':
        this.#runOrReport(() => this.#useVersion(effect.version))
        break
      case 'loadQuestion':
        this.#runOrReport(() => this.#loadQuestion(effect.messageId))
        break
      case 'stepVersion':
        this.#runOrReport(() => this.#stepVersion(effect.by))
        break
      case 'rename':
        this.#runOrReport(async () => {
          await port.rename(effect.title)
          this.#printNote(`renamed the conversation to ${plainLine(effect.title)}`)
        })
        break
      case 'openConversation':
        this.#runOrReport(() => this.#openConversation(effect.conversation))
        break
      case 'copy':
        this.#runOrReport(async () => {
          if (!machine.copy)
            return this.#printNote(
              'no clipboard is available; /export writes the conversation to a file',
              true,
            )
          this.#printNote(copiedNote(effect.what, await machine.copy(effect.text)))
        })
        break
      case 'export':
        this.#runOrReport(() => this.#export(effect.file))
        break
      case 'redraw':
        this.parts.onRedraw()
        break
      case 'leave':
        this.parts.onLeave()
    }
  }

  #printNote(text: string, isBad = false): void {
    this.dispatch({ type: 'note', text, isBad })
  }

  /** Runs a task. If it fails, only reports the error. */
  #runOrReport(task: () => Promise<void>): void {
    task().catch((error: unknown) => this.#printNote(reportOf(error).message, true))
  }

  /** Runs a task on a file. Does not report its failure if the user stops it. */
  #runFileTask(act: (signal: AbortSignal) => Promise<void>): void {
    const task = new AbortController()
    this.#fileTask = task
    const { signal } = task
    act(signal)
      .catch((error: unknown) => {
        if (!signal.aborted) this.#printNote(reportOf(error).message, true)
      })
      .finally(() => {
        if (!signal.aborted) this.dispatch({ type: 'fileTaskEnded' })
      })
  }

  #startReading(open: OpenTurn): void {
    const before = this.#reading
    // Keeps reading a stopped turn until the runtime has stored its question, because it cannot be stopped before.
    if (!before?.isStopped) before?.controller.abort()
    const reading: TurnReading = {
      controller: new AbortController(),
      isStored: false,
      isStopped: false,
      ended: Promise.resolve(),
    }
    this.#reading = reading
    reading.ended = this.#stopping.then(() => this.#follow(reading, open))
  }

  async #follow(reading: TurnReading, open: OpenTurn): Promise<void> {
    const { signal } = reading.controller
    if (signal.aborted || reading.isStopped) return
    const onConnection = (isLost: boolean) => this.dispatch({ type: 'connection', isLost })
    try {
      const first = open(signal, () => reading.controller.abort())
      for await (const event of followTurn({ port: this.parts.port, signal, onConnection }, first)) {
        reading.isStored = true
        if (reading.isStopped && !signal.aborted) await this.#stopTurn(reading)
        if (signal.aborted) return
        this.dispatch({ type: 'turn', event, used: await loadUsedPassages(event, this.parts.port) })
      }
    } catch (error) {
      if (!signal.aborted && !reading.isStopped)
        this.dispatch({ type: 'failed', failure: toChatFailure(error) })
    }
  }

  async *#resumeTurn(
    { content, exceptIds, orSend }: ResumeEffect,
    signal: AbortSignal,
    disconnect: () => void,
  ): AsyncGenerator<TurnEvent> {
    let isAttached = false
    try {
      for await (const event of this.parts.port.attach(signal)) {
        if (!isAttached) {
          if (signal.aborted) break
          if (event.event !== 'user-message' || exceptIds.includes(event.data.messageId)) break
          if (content !== undefined && event.data.content !== content) break
          this.dispatch({ type: 'attached', question: event.data })
        }
        isAttached = true
        yield event
      }
    } catch (error) {
      if (isAttached || !isNotFound(error)) throw error
    }
    if (isAttached) return
    if (orSend) yield* this.parts.port.send(orSend, signal)
    else disconnect()
  }

  #stop(): void {
    const reading = this.#reading
    if (!reading) return
    reading.isStopped = true
    this.#stopping = reading.isStored ? this.#stopTurn(reading) : reading.ended
  }

  async #stopTurn({ controller: leave }: TurnReading): Promise<void> {
    leave.abort()
    await this.parts.port.stop().catch((error: unknown) => {
      this.#printNote(`the runtime may continue to answer: ${reportOf(error).message}`, true)
    })
  }

  /** Retries until the runtime responds, even with an error. */
  async #waitForRuntime(): Promise<void> {
    const waiting = new AbortController()
    this.#outageWait = waiting
    const { signal } = waiting
    for (let waitMs = RETRY_FIRST_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
      await pause(waitMs, signal)
      if (signal.aborted) return
      try {
        const messages = await this.parts.port.messages()
        if (!signal.aborted) this.dispatch({ type: 'reconnected', messages })
        return
      } catch (error) {
        if (isUnavailable(error)) continue
        if (!signal.aborted) this.dispatch({ type: 'reconnected', messages: [] })
        return
      }
    }
  }

  async #loadSuggestions(): Promise<void> {
    // An error is not reported: without titles, an empty chat has no suggestions.
    const titles = await this.parts.port.documentTitles(SUGGESTIONS_MAX).catch(() => [])
    if (titles.length > 0) this.dispatch({ type: 'suggestionsLoaded', questions: suggestedQuestions(titles) })
  }

  #openPanel(panel: ChatPanel): void {
    this.dispatch({ type: 'panelOpened', panel })
  }

  async #openPassage(citation: Citation, knownText: string | undefined): Promise<void> {
    const { text, neighbors } = await this.parts.port.citedPassage(citation)
    const [before, after] = neighbors
    const passage = text || knownText || 'this passage was deleted'
    const title = `[${citation.number}] ${citationSource(citation)}`
    this.#openPanel(passagePanel({ title, before, passage, after }, this.#state.size))
  }

  async #openTools(): Promise<void> {
    const tools = await this.parts.port.tools()
    const { servers } = this.#state.subject
    const text = tools
      .map(({ id, description }) => `**\`${toolDisplayName(id, servers)}\`**  ${plainLine(description)}`)
      .join('\n\n')
    this.#openPanel({
      kind: 'text',
      title: 'Tools',
      page: { text: text || 'none', format: 'markdown' },
      top: 0,
    })
  }

  async #openAttachments(): Promise<void> {
    const attached = await this.parts.port.attachments()
    const lines = attached.map(({ filename, textChars }) =>
      plainLine(`${filename}, ${formatCounted(textChars, 'character')}`),
    )
    const text = lines.join('\n') || 'none; /attach FILE attaches a file to the conversation'
    this.#openPanel({ kind: 'text', title: 'Attachments', page: { text, format: 'plain' }, top: 0 })
  }

  async #openConversation(conversation: { id: string; name: string } | undefined): Promise<void> {
    const { port } = this.parts
    port.switchConversation(conversation?.id)
    if (conversation) return this.resume(conversation.name)
    const knowledgeBases = await port.knowledgeBasesInUse()
    this.dispatch({ type: 'resumed', messages: [], title: 'new conversation', knowledgeBases })
  }

  async #useVersion(wanted: { id: string; name: string } | number): Promise<void> {
    const { port } = this.parts
    const all =
      typeof wanted === 'number' ? await listLastVersions(port, this.#state.last.question?.messageId) : []
    const version = typeof wanted === 'number' ? all[wanted - 1] : wanted
    if (!version)
      return this.#printNote(
        `there is no version ${wanted}; the question has ${formatCounted(all.length, 'version')}`,
        true,
      )
    await port.useVersion(version.id)
    const messages = await port.messages()
    this.dispatch({ type: 'resumed', messages, title: `version ${version.name}`, fromId: version.id })
  }

  async #stepVersion(by: -1 | 1): Promise<void> {
    const all = await listLastVersions(this.parts.port, this.#state.last.question?.messageId)
    const version = all[all.findIndex(({ isChosen }) => isChosen) + by]
    if (version) return this.#useVersion(version)
    const only = all.length === 1 ? 'the question has one version' : undefined
    this.#printNote(only ?? `this is the ${by < 0 ? 'first' : 'last'} of ${all.length} versions`)
  }

  async #loadQuestion(messageId: string): Promise<void> {
    const message = (await this.parts.port.messages()).find(one => one.messageId === messageId)
    if (message) this.dispatch({ type: 'editing', question: questionOf(message) })
  }

  async #export(file: string | undefined): Promise<void> {
    const text = await this.parts.port.exportMarkdown()
    if (text === undefined) return this.#printNote('the conversation is empty', true)
    const path = file ?? 'conversation.md'
    await this.parts.machine.save(path, text)
    this.#printNote(`wrote the conversation to ${path}`)
  }
}

/** Describes a copy. Mentions terminal settings if the terminal was asked to copy, because it does not confirm. */
function copiedNote(what: string, by: CopiedBy): string {
  if (by === 'program') return `copied ${what}`
  const condition =
    by === 'tmux'
      ? 'tmux needs set-clipboard on or allow-passthrough on'
      : 'some terminals need a setting that allows this'
  return `asked the terminal to copy ${what}; ${condition}`
}

function toChatFailure(error: unknown): ChatFailure {
  const { message, code = 'unexpected', next } = reportOf(error)
  return { kind: isUnavailable(error) ? 'unreachable' : 'rejected', code, message, next }
}
