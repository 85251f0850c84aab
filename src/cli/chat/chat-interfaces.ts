import type { Clock } from '../../base/clock.ts'
import type { Io } from '../io.ts'
import type { CopiedBy } from '../terminal/clipboard.ts'
import type { ChatPort, NamedImage } from './port.ts'

/** Files and the clipboard of the machine on which a chat runs. */
export interface ChatMachine {
  /** Copies text to the clipboard; undefined if there is no clipboard program, and the terminal cannot copy. */
  readonly copy: ((text: string) => Promise<CopiedBy>) | undefined
  /** Writes a new file. @throws UsageError  the file already exists */
  save(path: string, text: string): Promise<void>
  /** Reads an image. @throws UsageError  the file cannot be read, or is not an image of a supported format */
  readImage(path: string): Promise<NamedImage>
  /** Reads a file to attach. @throws UsageError  the file cannot be read, or is too large */
  readFile(path: string): Promise<File>
}

/** Names of the agent, the knowledge bases and the MCP servers of a chat. */
export interface ChatSubject {
  readonly agent: string
  /** Names of the knowledge bases that the agent searches; empty for the whole workspace. */
  readonly knowledgeBases: readonly string[]
  /** Names of the MCP servers whose tools the agent may use, by ID. */
  readonly servers: Readonly<Record<string, string>>
}

export interface ChatOptions {
  readonly port: ChatPort
  readonly machine: ChatMachine
  readonly clock: Clock
  readonly terminal: Pick<Io, 'stdin' | 'stdout' | 'signals'>
  readonly subject: ChatSubject
  readonly hasColors: boolean
  /** The conversation to continue; undefined for a new one. */
  readonly conversation: { readonly id: string; readonly name: string } | undefined
  /** The question to send first; undefined to wait for input. */
  readonly question: string | undefined
  /** Aborts the chat. */
  readonly signal: AbortSignal
  /** Writes text to stdout. */
  write(text: string): void
}

/** Options of a single question. */
export interface AskOptions extends Omit<ChatOptions, 'port'> {
  readonly port: Pick<ChatPort, 'send' | 'findPassages' | 'usedPassages'>
}

/** Ways to show a chat in a terminal. */
export interface ChatInterfaces {
  /** Shows an interactive chat at the bottom of the terminal until the user exits. */
  chatInTerminal(options: ChatOptions): Promise<void>
  /** Prints plain lines for a screen reader until the user exits. */
  chatInLines(options: ChatOptions): Promise<void>
  /** Shows one question and its answer. */
  askInTerminal(options: AskOptions): Promise<void>
}
