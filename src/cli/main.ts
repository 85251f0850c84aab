import { Config, type Plugin } from '@oclif/core/config'
import { nearestMatch } from '../base/nearest-match.ts'
import { packageRoot } from '../base/package.ts'
import { shellWord } from '../base/shell-word.ts'
import type { BaseCommand } from './command/base-command.ts'
import { exit, exitStatus } from './command/exit.ts'
import { reportLines, toReport } from './command/report.ts'
import { suggestionFor, synonymOf } from './command/verbs.ts'
import { UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { withTypedProgram } from './launch-command.ts'
import { styleFor } from './terminal/style.ts'
import { withoutTokens } from './terminal/terminal-text.ts'

/** Alternative names of topics (the first words of commands). */
const topicAliases: Record<string, string> = { bases: 'kb', base: 'kb' }

const helpFlags = ['--help', '-h']

/**
 * Runs a command line and returns its exit status.
 *
 * @param words  words after `wb`
 * @param options.plugins  plugins that contain the commands; the built plugin by default
 */
export async function main(
  words: readonly string[],
  io: Io,
  options: { plugins?: Map<string, Plugin> } = {},
): Promise<number> {
  try {
    const config = await Config.load({ ...options, root: packageRoot() })
    return await dispatch({ config, typedWords: words, io })
  } catch (error) {
    for (const line of reportLines(toReport(error), styleFor(false)))
      io.stderr.write(`${withoutTokens(withTypedProgram(line, io))}\n`)
    return exitStatus(error)
  }
}

/** A command line and its dependencies. */
interface Invocation {
  readonly config: Config
  /** Words after `wb`, as the user typed them. */
  readonly typedWords: readonly string[]
  readonly io: Io
}

async function dispatch(invocation: Invocation): Promise<number> {
  const { config, typedWords, io } = invocation
  const [first = '', ...rest] = typedWords
  const words = resolveAliases(config, [topicAliases[first] ?? first, ...rest])
  if (first === '--version' || first === '-v') return print(io, `${config.userAgent}\n`)
  if (first === '')
    return (await userAcceptsQuickstart(io))
      ? runCommand(invocation, 'quickstart', ['.'])
      : printHelp(invocation, 'basic', [])
  if (first === 'help') return printHelp(invocation, 'all', resolveAliases(config, rest))
  if (helpFlags.includes(first)) return printHelp(invocation, 'all', [])

  if (first.startsWith('-'))
    throw new UsageError(`put ${first} after the command`, [suggestOrder(config, typedWords), 'wb --help'])

  const { id, argv } = splitCommand(config.commandIDs, words)
  const beforeDashes = words.slice(0, words.includes('--') ? words.indexOf('--') : undefined)
  if (beforeDashes.some(word => helpFlags.includes(word)))
    return printHelp(invocation, 'all', id ? id.split(':') : words.filter(word => !word.startsWith('-')))
  if (id) return runCommand(invocation, id, argv)
  if (isTopic(config, words)) return printHelp(invocation, 'all', words)
  const unknownIndex = words.findIndex((_, at) => !isTopic(config, words.slice(0, at + 1)))
  throw unknownCommandError(config, words.slice(0, unknownIndex + 1))
}

/** Returns the command line with its leading flags moved to the end, or an example if there is no command. */
function suggestOrder(config: Config, typedWords: readonly string[]): string {
  const at = typedWords.findIndex(
    (_, from) => splitCommand(config.commandIDs, resolveAliases(config, typedWords.slice(from))).id,
  )
  if (at < 0) return 'wb kb list --json'
  return ['wb', ...typedWords.slice(at), ...typedWords.slice(0, at)].map(shellWord).join(' ')
}

/**
 * Replaces singular topics and verbs of other tools with their names in Workbase: `wb key list` becomes `wb keys list`,
 * and `wb mcp server ls` becomes `wb mcp servers list`.
 */
function resolveAliases(config: Config, words: readonly string[]): string[] {
  const resolved = [...words]
  for (const [at, word] of words.entries()) {
    const topic = resolved.slice(0, at)
    if (isTopic(config, [...topic, `${word}s`])) resolved[at] = `${word}s`
    else if (!isTopic(config, [...topic, word])) {
      if (at > 0) resolved[at] = synonymOf(word, hasVerb(config, topic)) ?? word
      break
    }
  }
  return resolved
}

function hasVerb(config: Config, topic: readonly string[]): (verb: string) => boolean {
  return verb => config.commandIDs.includes([...topic, verb].join(':'))
}

/** Splits words into a command ID, which is as long as possible, and the arguments. */
function splitCommand(ids: readonly string[], words: readonly string[]): { id?: string; argv: string[] } {
  for (let length = Math.min(words.length, 3); length > 0; length--) {
    const id = words.slice(0, length).join(':')
    if (ids.includes(id)) return { id, argv: words.slice(length) }
  }
  return { argv: [...words] }
}

function isTopic(config: Config, words: readonly string[]): boolean {
  return config.commandIDs.some(id => id.startsWith(`${words.join(':')}:`))
}

function unknownCommandError(config: Config, words: readonly string[]): UsageError {
  const typedCommand = words.join(' ')
  const commands = config.commandIDs.map(id => id.replaceAll(':', ' '))
  const topics = [...new Set(config.commandIDs.map(id => id.split(':')[0]!))]
  const topic = words.slice(0, -1)
  const verb = suggestionFor(words.at(-1)!, hasVerb(config, topic))
  const suggestion = verb
    ? [...topic, verb].join(' ')
    : (nearestMatch(typedCommand, [...commands, ...topics]) ?? findCommandByVerb(words[0]!, commands))
  const helpCommand = words.length > 1 ? `wb ${words[0]} --help` : 'wb --help'
  return new UsageError(
    `unknown command "wb ${typedCommand}"`,
    suggestion ? [`did you mean wb ${suggestion}?`, helpCommand] : [helpCommand],
  )
}

/** Returns the first command with a verb that the user typed without a topic, such as `kb list` for `list`. */
function findCommandByVerb(word: string, commands: readonly string[]): string | undefined {
  const verbOf = (command: string) => command.split(' ')[1] ?? ''
  const verb = nearestMatch(word, [...new Set(commands.map(verbOf))])
  return verb && commands.find(command => verbOf(command) === verb)
}

/** Returns true if the user has no documents yet, and agrees to ingest and search the working directory. */
async function userAcceptsQuickstart(io: Io): Promise<boolean> {
  const isTerminal = io.stdin.isTTY && io.stdout.isTTY && io.stderr.isTTY
  return Boolean(isTerminal) && (await import('./quickstart/first-run.ts')).offerQuickstart(io)
}

type CommandClass = new (argv: string[], config: Config, io: Io) => BaseCommand

async function runCommand({ config, io }: Invocation, id: string, argv: string[]): Promise<number> {
  const Command = (await config.findCommand(id, { must: true }).load()) as unknown as CommandClass
  return new Command(argv, config, io).execute()
}

async function printHelp(
  { config, typedWords, io }: Invocation,
  scope: 'basic' | 'all',
  words: readonly string[],
): Promise<number> {
  const { helpStyle, helpText } = await import('./command/help.ts')
  const text = helpText(config, scope, words, helpStyle(io, typedWords))
  if (text === undefined) throw unknownCommandError(config, words)
  return print(io, text)
}

function print({ stdout }: Io, text: string): number {
  stdout.write(text)
  return exit.ok
}
