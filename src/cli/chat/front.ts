import type { Clock } from '../../base/clock.ts'
import type { Io } from '../io.ts'
import type { CopiedBy } from '../terminal/clipboard.ts'
import type { ChatPort, NamedImage } from './port.ts'

/** What a chat reaches on the machine of the person. */
export interface Desk {
  /** Undefined if neither a program nor the terminal can copy. */
  readonly copy: ((text: string) => Promise<CopiedBy>) | undefined
  /** Write a new file. @throws UsageError  there is one of that name already */
  save(path: string, text: string): Promise<void>
  /** Reads an image. @throws UsageError  it cannot be read, or is no image that models read */
  readImage(path: string): Promise<NamedImage>
  /** Reads a file to attach. @throws UsageError  it cannot be read, or is too large */
  readFile(path: string): Promise<File>
}

/** With whom one speaks. */
export interface About {
  readonly agent: string
  /** Names; none is all of the workspace. */
  readonly knowledgeBases: readonly string[]
  /** Names of the MCP servers whose tools the agent may use, by id. */
  readonly servers: Readonly<Record<string, string>>
}

export interface FrontOptions {
  readonly port: ChatPort
  readonly desk: Desk
  readonly clock: Clock
  readonly terminal: Pick<Io, 'stdin' | 'stdout'>
  readonly about: About
  readonly colour: boolean
  /** The conversation to go on with. */
  readonly conversation: { readonly id: string; readonly name: string } | undefined
  /** Said at once. */
  readonly question: string | undefined
  /** Ends it from outside. */
  readonly signal: AbortSignal
  /** Writes to the terminal, in the signs that it takes. */
  write(text: string): void
}

/** What one question and its answer take of a chat. */
export interface AskOptions extends Omit<FrontOptions, 'port'> {
  readonly port: Pick<ChatPort, 'send' | 'find'>
}

/** The ways to show a chat in a terminal. */
export interface Fronts {
  /** Until the person leaves. */
  chatInTerminal(options: FrontOptions): Promise<void>
  /** The same in plain lines, one below the other, for who has them read out. */
  chatInLines(options: FrontOptions): Promise<void>
  /** One question and its answer. */
  askInTerminal(options: AskOptions): Promise<void>
}
