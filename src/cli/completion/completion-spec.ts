import type { Config } from '@oclif/core/config'

type LoadableCommand = Config['commands'][number]

/** Possible values of a flag or argument: fixed words, a file, a folder, or any text. */
export type CompletionValue = readonly string[] | 'file' | 'folder' | 'text'

export interface CompletionFlag {
  /** Names with dashes, the long name first. */
  readonly names: readonly string[]
  readonly summary: string
  /** Undefined for a flag without a value. */
  readonly value: CompletionValue | undefined
  readonly isMultiple: boolean
}

/** The next word after a topic: a command or a subtopic. */
export interface CompletionWord {
  readonly word: string
  readonly summary: string
}

export interface CompletionTopic {
  /** Path as typed, such as `mcp servers`; empty for the first word. */
  readonly path: string
  readonly words: readonly CompletionWord[]
}

export interface CompletionCommand {
  readonly path: string
  /** Flags of the command, without the global flags. */
  readonly flags: readonly CompletionFlag[]
  /** Possible values of the first argument that can be completed; `text` without such an argument. */
  readonly operand: CompletionValue
}

/** The words, flags and arguments that can be completed. */
export interface CompletionSpec {
  readonly topics: readonly CompletionTopic[]
  readonly commands: readonly CompletionCommand[]
  readonly globalFlags: readonly CompletionFlag[]
}

/** Builds the completion data from the command manifest. */
export function completionSpec({ commands, topics }: Pick<Config, 'commands' | 'topics'>): CompletionSpec {
  const visibleCommands = commands.filter(({ hidden }) => !hidden).sort((a, b) => (a.id < b.id ? -1 : 1))
  const summaries = new Map([
    ...topics.map(({ name, description = '' }) => [name, description] as const),
    ...visibleCommands.map(({ id, summary = '' }) => [id, summary] as const),
  ])
  const [anyCommand] = visibleCommands
  return {
    topics: topicsOf(visibleCommands, summaries),
    commands: visibleCommands.map(command => ({
      path: commandName(command.id),
      flags: flagsOf(command, group => group !== 'GLOBAL'),
      operand: operandValue(command),
    })),
    globalFlags: anyCommand ? flagsOf(anyCommand, group => group === 'GLOBAL') : [],
  }
}

function topicsOf(
  commands: readonly LoadableCommand[],
  summaries: ReadonlyMap<string, string>,
): CompletionTopic[] {
  const words = new Map<string, Map<string, string>>()
  for (const { id } of commands) {
    const parts = id.split(':')
    for (const [index, word] of parts.entries()) {
      const path = parts.slice(0, index).join(' ')
      const children = words.get(path) ?? new Map<string, string>()
      words.set(path, children.set(word, summaries.get(parts.slice(0, index + 1).join(':')) ?? ''))
    }
  }
  return [...words].map(([path, children]) => ({
    path,
    words: [...children].map(([word, summary]) => ({ word, summary })),
  }))
}

function flagsOf({ flags }: LoadableCommand, isWanted: (group?: string) => boolean): CompletionFlag[] {
  return Object.values(flags)
    .filter(({ helpGroup, hidden }) => !hidden && isWanted(helpGroup))
    .flatMap(flag => {
      const { name, char, summary = '' } = flag
      const isOption = flag.type === 'option'
      const value = isOption ? (flag.options ?? valueOfFlag(flag.helpValue?.toString())) : undefined
      const common = { summary, value, isMultiple: isOption && flag.multiple === true }
      const names = char ? [`--${name}`, `-${char}`] : [`--${name}`]
      const negated = !isOption && flag.allowNo ? [{ ...common, names: [`--no-${name}`] }] : []
      return [{ ...common, names }, ...negated]
    })
}

function valueOfFlag(helpValue: string | undefined): CompletionValue {
  if (helpValue === 'DIR') return 'folder'
  return helpValue === 'FILE' ? 'file' : 'text'
}

/** Returns the possible values of the first argument that can be completed; `text` without such an argument. */
function operandValue({ args }: LoadableCommand): CompletionValue {
  for (const { name, options } of Object.values(args)) {
    if (options) return options
    if (name === 'path' || name === 'folder') return 'file'
  }
  return 'text'
}

function commandName(id: string): string {
  return id.replaceAll(':', ' ')
}
