import type { Clock } from '../../base/clock.ts'
import { pause } from '../../base/pause.ts'
import type { ChatMachine } from '../../cli/chat/chat-interfaces.ts'
import { citationSource } from '../../cli/chat/citation-source.ts'
import type { ChatPort } from '../../cli/chat/port.ts'
import { toolDisplayName } from '../../cli/chat/tool-name.ts'
import { toReport } from '../../cli/command/report.ts'
import type { CopiedBy } from '../../cli/terminal/clipboard.ts'
import { formatCounted } from '../../cli/terminal/output.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Citation, TurnEvent } from '../../contract/chat.ts'
import { isUnavailable } from '../parts/is-unavailable.ts'
import type { Size } from '../parts/terminal-session.ts'
import { chooseByName, listLatestVersions, loadChoicePanel, typableNames } from './choices.ts'
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
  /** Called with each part of the conversation to print, in order. */
  onPrint(part: TranscriptPart): void
  /** Called after each event. */
  onChange(event: ChatEvent): void
  onRedraw(): void
  onLeave(): void
}

/** A turn whose events are being read. */
interface TurnReading {
  /** Stops reading the events. The turn continues in the runtime. */
  readonly controller: AbortController
  /** True once the runtime has stored the question; only then can the turn be stopped. */
  isStored: boolean
  /** True once the user has asked to stop the turn. */
  isStopRequested: boolean
  /** Resolves when the events are no longer read. */
  ended: Promise<void>
}

/** Opens the event stream of a turn. If there is no turn to read, calls `endSilently`, so that it is not reported as a failure. */
type OpenTurn = (signal: AbortSignal, endSilently: () => void) => AsyncIterable<TurnEvent>

/** Maximum time to wait for the runtime to stop a turn when the chat closes. */
const STOP_WAIT_MAX_MS = 2_000
const RETRY_FIRST_MS = 500
const RETRY_MAX_MS = 10_000
/** Time between two ticks while work is in progress. */
const TICK_MS = 100

/** Runs a chat: applies events to its state, and runs the effects that they cause. */
export class Chat {
  #state: ChatState
  #reading: TurnReading | undefined
  /** Resolves when the last request to stop a turn has ended, even if it failed. */
  #stopping: Promise<void> = Promise.resolve()
  #outageWait: AbortController | undefined
  #fileTask: AbortController | undefined
  #isTicking = false

  constructor(
    state: ChatState,
    private readonly options: ChatRunnerOptions,
  ) {
    this.#state = state
  }

  get state(): ChatState {
    return this.#state
  }

  dispatch(event: ChatEvent): void {
    const nowMs = this.options.clock.now()
    const [withTime] = stepChat(this.#state, { type: 'tick', nowMs })
    const [state, effects] = stepChat(withTime, event)
    this.#state = state
    for (const effect of effects) this.#run(effect)
    this.#scheduleTick()
    this.options.onChange(event)
  }

  /** Applies a new screen size without calling `onChange`. */
  resize(size: Size): void {
    this.#state = stepChat(this.#state, { type: 'resized', size })[0]
  }

  /** Loads the questions that an empty chat suggests. */
  loadSuggestions(): void {
    void this.#loadSuggestions()
  }

  /** Shows the current conversation of the port, and continues to read a turn that is still running in it. */
  async resume(title: string): Promise<void> {
    const { port } = this.options
    const [messages, knowledgeBases] = await Promise.all([port.messages(), port.knowledgeBasesInUse()])
    this.dispatch({ type: 'resumed', messages, title, knowledgeBases })
    const answeredQuestions = messages.filter((_, index) => messages[index + 1]?.role === 'agent')
    const excludedIds = answeredQuestions.map(({ messageId }) => messageId)
    this.#run({ type: 'resume', excludedIds })
  }

  /**
   * Disconnects. If the user has stopped the turn, waits up to 2 seconds until the runtime has stopped it. Otherwise,
   * the turn continues in the runtime.
   */
  async close(): Promise<void> {
    this.#outageWait?.abort()
    this.#fileTask?.abort()
    const reading = this.#reading
    if (reading?.isStopRequested && !reading.isStored) this.#stopping = this.#stopTurn(reading)
    reading?.controller.abort()
    const stopped = new AbortController()
    await Promise.race([
      this.#stopping.finally(() => stopped.abort()),
      pause(STOP_WAIT_MAX_MS, stopped.signal),
    ])
  }

  #scheduleTick(): void {
    const { turn, outage, fileTask } = this.#state
    if (this.#isTicking || (!turn && !outage && !fileTask)) return
    this.#isTicking = true
    this.options.clock.after(TICK_MS, () => {
      this.#isTicking = false
      this.dispatch({ type: 'tick', nowMs: this.options.clock.now() })
    })
  }

  #run(effect: ChatEffect): void {
    const { port, machine, onPrint } = this.options
    switch (effect.type) {
      case 'print':
        onPrint(effect.part)
        break
      case 'send':
        this.#startReading(signal => port.send(effect.message, signal))
        break
      case 'resume':
        this.#startReading((signal, endSilently) => this.#resumeTurn(effect, signal, endSilently))
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
          const panel = chooseByName(effect.input, await loadChoicePanel(port, effect.purpose, this.#state))
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
          await port.useKnowledgeBases(effect.knowledgeBases.map(({ id }) => id))
          this.dispatch({
            type: 'basesChanged',
            knowledgeBases: effect.knowledgeBases.map(({ name }) => name),
          })
        })
        break
      case 'useVersion':
        this.#runOrReport(() => this.#useVersion(effect.version))
        break
      case 'loadQuestion':
        this.#runOrReport(() => this.#loadQuestion(effect.messageId))
        break
      case 'stepVersion':
        this.#runOrReport(() => this.#stepVersion(effect.offset))
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
          this.#printNote(copiedNote(effect.label, await machine.copy(effect.text)))
        })
        break
      case 'export':
        this.#runOrReport(() => this.#export(effect.file))
        break
      case 'redraw':
        this.options.onRedraw()
        break
      case 'leave':
        this.options.onLeave()
    }
  }

  #printNote(text: string, isError = false): void {
    this.dispatch({ type: 'note', text, isError })
  }

  /** Runs a task, and shows its error if it fails. */
  #runOrReport(task: () => Promise<void>): void {
    task().catch((error: unknown) => this.#printNote(toReport(error).message, true))
  }

  /** Runs a task on a file, and shows its error if it fails. Shows nothing if the user has stopped the task. */
  #runFileTask(task: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController()
    this.#fileTask = controller
    const { signal } = controller
    task(signal)
      .catch((error: unknown) => {
        if (!signal.aborted) this.#printNote(toReport(error).message, true)
      })
      .finally(() => {
        if (!signal.aborted) this.dispatch({ type: 'fileTaskEnded' })
      })
  }

  #startReading(open: OpenTurn): void {
    const previous = this.#reading
    // The runtime can stop a turn only after it has stored the question, so the turn is read until then.
    if (!previous?.isStopRequested) previous?.controller.abort()
    const reading: TurnReading = {
      controller: new AbortController(),
      isStored: false,
      isStopRequested: false,
      ended: Promise.resolve(),
    }
    this.#reading = reading
    reading.ended = this.#stopping.then(() => this.#follow(reading, open))
  }

  async #follow(reading: TurnReading, open: OpenTurn): Promise<void> {
    const { signal } = reading.controller
    if (signal.aborted || reading.isStopRequested) return
    const onConnection = (isLost: boolean) => this.dispatch({ type: 'connection', isLost })
    try {
      const first = open(signal, () => reading.controller.abort())
      for await (const event of followTurn({ port: this.options.port, signal, onConnection }, first)) {
        reading.isStored = true
        if (reading.isStopRequested && !signal.aborted) await this.#stopTurn(reading)
        if (signal.aborted) return
        this.dispatch({ type: 'turn', event, usedPassages: await loadUsedPassages(event, this.options.port) })
      }
    } catch (error) {
      if (!signal.aborted && !reading.isStopRequested)
        this.dispatch({ type: 'failed', failure: toChatFailure(error) })
    }
  }

  async *#resumeTurn(
    { content, excludedIds, fallbackMessage }: ResumeEffect,
    signal: AbortSignal,
    endSilently: () => void,
  ): AsyncGenerator<TurnEvent> {
    let isResumed = false
    try {
      for await (const event of this.options.port.readRunningTurn(signal)) {
        if (!isResumed) {
          if (signal.aborted) break
          if (event.event !== 'user-message' || excludedIds.includes(event.data.messageId)) break
          if (content !== undefined && event.data.content !== content) break
          this.dispatch({ type: 'turnResumed', question: event.data })
        }
        isResumed = true
        yield event
      }
    } catch (error) {
      if (isResumed || !isNotFound(error)) throw error
    }
    if (isResumed) return
    if (fallbackMessage) yield* this.options.port.send(fallbackMessage, signal)
    else endSilently()
  }

  #stop(): void {
    const reading = this.#reading
    if (!reading) return
    reading.isStopRequested = true
    this.#stopping = reading.isStored ? this.#stopTurn(reading) : reading.ended
  }

  async #stopTurn({ controller }: TurnReading): Promise<void> {
    controller.abort()
    await this.options.port.stop().catch((error: unknown) => {
      this.#printNote(`the runtime may continue to answer: ${toReport(error).message}`, true)
    })
  }

  /** Sends requests until the runtime responds, even with an error. */
  async #waitForRuntime(): Promise<void> {
    const retrying = new AbortController()
    this.#outageWait = retrying
    const { signal } = retrying
    for (let waitMs = RETRY_FIRST_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
      await pause(waitMs, signal)
      if (signal.aborted) return
      try {
        const messages = await this.options.port.messages()
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
    // Errors are ignored, because suggestions are optional.
    const titles = await this.options.port.documentTitles(SUGGESTIONS_MAX).catch(() => [])
    if (titles.length > 0) this.dispatch({ type: 'suggestionsLoaded', questions: suggestedQuestions(titles) })
  }

  #openPanel(panel: ChatPanel): void {
    this.dispatch({ type: 'panelOpened', panel })
  }

  async #openPassage(citation: Citation, knownText: string | undefined): Promise<void> {
    const { text, neighbors } = await this.options.port.citedPassage(citation)
    const [before, after] = neighbors
    const passage = text || knownText || 'this passage was deleted'
    const title = `[${citation.number}] ${citationSource(citation)}`
    this.#openPanel(passagePanel({ title, before, passage, after }, this.#state.size))
  }

  async #openTools(): Promise<void> {
    const tools = await this.options.port.tools()
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
    const attached = await this.options.port.attachments()
    const lines = attached.map(({ filename, textChars }) =>
      plainLine(`${filename}, ${formatCounted(textChars, 'character')}`),
    )
    const text = lines.join('\n') || 'none; /attach FILE attaches a file to the conversation'
    this.#openPanel({ kind: 'text', title: 'Attachments', page: { text, format: 'plain' }, top: 0 })
  }

  async #openConversation(conversation: { id: string; name: string } | undefined): Promise<void> {
    const { port } = this.options
    port.switchConversation(conversation?.id)
    if (conversation) return this.resume(conversation.name)
    const knowledgeBases = await port.knowledgeBasesInUse()
    this.dispatch({ type: 'resumed', messages: [], title: 'new conversation', knowledgeBases })
  }

  async #useVersion(requested: { id: string; name: string } | number): Promise<void> {
    const { port } = this.options
    const versions =
      typeof requested === 'number'
        ? await listLatestVersions(port, this.#state.lastExchange.question?.messageId)
        : []
    const version = typeof requested === 'number' ? versions[requested - 1] : requested
    if (!version)
      return this.#printNote(
        `there is no version ${requested}; the question has ${formatCounted(versions.length, 'version')}`,
        true,
      )
    await port.useVersion(version.id)
    const messages = await port.messages()
    this.dispatch({ type: 'resumed', messages, title: `version ${version.name}`, fromId: version.id })
  }

  async #stepVersion(offset: -1 | 1): Promise<void> {
    const versions = await listLatestVersions(this.options.port, this.#state.lastExchange.question?.messageId)
    const version = versions[versions.findIndex(({ isChosen }) => isChosen) + offset]
    if (version) return this.#useVersion(version)
    this.#printNote(
      versions.length === 1
        ? 'the question has one version'
        : `this is the ${offset < 0 ? 'first' : 'last'} of ${versions.length} versions`,
    )
  }

  async #loadQuestion(messageId: string): Promise<void> {
    const message = (await this.options.port.messages()).find(candidate => candidate.messageId === messageId)
    if (message) this.dispatch({ type: 'editing', question: questionOf(message) })
  }

  async #export(file: string | undefined): Promise<void> {
    const text = await this.options.port.exportMarkdown()
    if (text === undefined) return this.#printNote('the conversation is empty', true)
    const path = file ?? 'conversation.md'
    await this.options.machine.save(path, text)
    this.#printNote(`wrote the conversation to ${path}`)
  }
}

/**
 * Returns the note after copying. If the terminal was asked to copy, the note mentions the settings that this requires,
 * because terminals do not confirm that they have copied.
 */
function copiedNote(label: string, copiedBy: CopiedBy): string {
  if (copiedBy === 'program') return `copied ${label}`
  const condition =
    copiedBy === 'tmux'
      ? 'tmux needs set-clipboard on or allow-passthrough on'
      : 'some terminals need a setting that allows this'
  return `asked the terminal to copy ${label}; ${condition}`
}

function toChatFailure(error: unknown): ChatFailure {
  const { message, code = 'unexpected', next } = toReport(error)
  return { kind: isUnavailable(error) ? 'unreachable' : 'rejected', code, message, nextSteps: next }
}
