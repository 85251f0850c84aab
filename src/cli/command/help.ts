import type { Config } from '@oclif/core/config'
import { columnsSetting } from '../environment.ts'
import type { Io } from '../io.ts'
import { type Style, styleFor } from '../terminal/style.ts'
import { displayWidth, pad } from '../terminal/terminal-text.ts'
import { wrapCommandLine, wrapLine } from '../terminal/wrap.ts'

type LoadableCommand = Config['commands'][number]

/** Commands listed by `wb` without arguments, in display order. */
const basicCommands = ['quickstart', 'kb ingest', 'kb search', 'kb list', 'chat', 'serve', 'login', 'status']

/** Order of commands and topics in `wb --help`. All others follow in alphabetical order. */
const topicOrder = [
  'quickstart',
  'search',
  'ask',
  'chat',
  'add',
  'serve',
  'open',
  'login',
  'logout',
  'whoami',
  'workspaces',
  'kb',
  'documents',
  'filters',
  'eval',
  'services',
  'agents',
  'conversations',
  'mcp',
  'jobs',
  'auth',
  'profiles',
  'keys',
  'access',
  'audit',
  'api',
  'config',
  'trust',
  'doctor',
  'status',
  'explain',
  'autocomplete',
  'version',
]

/** Order of subtopics and commands within a topic. */
const commandOrder = [
  'principals',
  'policy',
  'explain',
  'who',
  'what',
  'diff',
  'status',
  'token',
  'list',
  'create',
  'add',
  'chunk',
  'ingest',
  'sync',
  'search',
  'why-not',
  'show',
  'stats',
  'insights',
  'context',
  'compact',
  'reindex',
  'export',
  'import',
  'watch',
  'chunks',
  'preview',
  'validate',
  'path',
  'update',
  'use',
  'rename',
  'test',
  'run',
  'compare',
  'tune',
  'generate',
  'drill',
  'review',
  'tools',
  'models',
  'templates',
  'adoptable',
  'decisions',
  'follow',
  'allow',
  'releases',
  'disallow',
  'rotate',
  'revoke',
  'cancel',
  'delete',
  'restore',
  'remove',
]

const introduction = 'Search your own documents on this machine, and get answers with citations.'
const widthMax = 100
/** Minimum width of the name column in `wb --help`, in cells, so that the columns of all lists are aligned. */
const nameWidthMin = 18
/** Minimum width of a description beside its name, in cells. */
const descriptionWidthMin = 30
/** Indentation of a description below its name, in cells. */
const descriptionIndent = 6

/** Style and width of printed help. */
interface HelpStyle extends Style {
  /** Width of the terminal in cells, or infinity for a file. */
  readonly columns: number
}

/**
 * Returns the style and width for help on stdout.
 *
 * @param commandLine  words of the command line
 */
export function helpStyle({ stdout, stderr, env }: Io, commandLine: readonly string[]): HelpStyle {
  const columns = stdout.columns ?? columnsSetting(env) ?? stderr.columns ?? Number.POSITIVE_INFINITY
  return { ...styleFor(stdout.isTTY === true && !commandLine.includes('--no-color')), columns }
}

/**
 * Returns the help of a command, a topic, or all commands.
 *
 * @param scope  commands to list if `words` is empty: `basic` for `wb` without arguments, else `all`
 * @param words  command or topic; empty for all commands
 * @returns undefined if there is no such command or topic
 */
export function helpText(
  config: Config,
  scope: 'basic' | 'all',
  words: readonly string[],
  style: HelpStyle,
): string | undefined {
  const commands = config.commands.filter(({ hidden }) => !hidden).sort((a, b) => compareCommands(a.id, b.id))
  if (words.length === 0)
    return joinLines(
      scope === 'basic' ? basicPage(commands, style) : allCommandsPage(commands, config, style),
    )
  const id = words.join(':')
  const command = commands.find(candidate => candidate.id === id)
  if (command) return joinLines(commandPage(command, style))
  for (const topic of [id, words[0]!]) {
    const inTopic = commands.filter(candidate => candidate.id.startsWith(`${topic}:`))
    if (inTopic.length > 0) return joinLines(topicPage(topic, inTopic, config, style))
  }
  return undefined
}

function joinLines(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

function basicPage(commands: LoadableCommand[], style: HelpStyle): string[] {
  const basics = basicCommands.flatMap(name => commands.filter(({ id }) => commandName(id) === name))
  return [
    ...wrapText(introduction, style),
    '',
    ...exampleLines('wb quickstart ./my-folder', style),
    ...exampleLines('wb kb search "where is my data stored"', style),
    '',
    ...listLines(
      basics.map(command => [commandName(command.id), summaryOf(command)]),
      style,
    ),
    '',
    ...wrapText('  Use wb --help for all commands, and wb COMMAND --help for one command.', style).map(
      style.dim,
    ),
  ]
}

function allCommandsPage(commands: LoadableCommand[], config: Config, style: HelpStyle): string[] {
  const names = [...new Set(commands.map(({ id }) => id.split(':')[0]!))].sort(compareTopics)
  const isCommand = (name: string) => commands.some(({ id }) => id === name)
  const rows = (listed: LoadableCommand[]) =>
    listLines(
      listed.map(command => [commandName(command.id), summaryOf(command)]),
      style,
      nameWidthMin,
    )
  const topics = names.filter(name => !isCommand(name))
  const sections = topics.map(topic => [
    ...wrapText(capitalize(topicSummary(config, topic)), style).map(style.strong),
    ...rows(commands.filter(({ id }) => id.startsWith(`${topic}:`))),
  ])
  return [
    ...wrapText(introduction, style),
    '',
    ...exampleLines('wb quickstart ./my-folder', style),
    ...exampleLines('wb kb search handbook "where is my data stored" --json', style),
    '',
    ...rows(names.flatMap(name => commands.filter(({ id }) => id === name))),
    ...sections.flatMap(lines => ['', ...lines]),
    '',
    ...wrapText('  Use wb COMMAND --help for arguments, flags and examples.', style).map(style.dim),
  ]
}

function compareTopics(a: string, b: string): number {
  const rank = (topic: string) => (topicOrder.includes(topic) ? topicOrder.indexOf(topic) : topicOrder.length)
  return rank(a) - rank(b) || a.localeCompare(b)
}

function compareCommands(a: string, b: string): number {
  const [topic = '', ...words] = a.split(':')
  const [otherTopic = '', ...otherWords] = b.split(':')
  const rank = (word: string | undefined) => (word === undefined ? -1 : commandOrder.indexOf(word))
  return words.reduce(
    (order, word, index) => order || rank(word) - rank(otherWords[index]),
    topic.localeCompare(otherTopic),
  )
}

function topicSummary(config: Config, topic: string): string {
  return config.topics.find(({ name }) => name === topic)?.description ?? topic
}

function topicPage(topic: string, commands: LoadableCommand[], config: Config, style: HelpStyle): string[] {
  const examples = commands.flatMap(command => examplesOf(command).slice(0, 1)).slice(0, 2)
  return [
    ...wrapText(toSentence(topicSummary(config, topic)), style),
    '',
    ...examples.flatMap(line => exampleLines(line, style)),
    '',
    ...listLines(
      commands.map(command => [commandName(command.id), summaryOf(command)]),
      style,
    ),
  ]
}

function commandPage(command: LoadableCommand, style: HelpStyle): string[] {
  const args = Object.values(command.args).filter(({ hidden }) => !hidden)
  const flags = Object.values(command.flags).filter(({ hidden }) => !hidden)
  const usage = args
    .map(arg => (arg.required ? arg.name.toUpperCase() : `[${arg.name.toUpperCase()}]`))
    .join(' ')
  const usageLine = command.usage?.toString() ?? `${commandName(command.id)}${usage ? ` ${usage}` : ''}`
  const commandFlags = flags.filter(({ helpGroup }) => helpGroup !== 'GLOBAL')
  return [
    ...wrapText(toSentence(summaryOf(command)), style),
    '',
    ...examplesOf(command).flatMap(line => exampleLines(line, style)),
    '',
    ...(command.description ? [...wrapText(command.description, style), ''] : []),
    ...wrapLine(
      `${style.strong('Usage')}  wb ${usageLine}${commandFlags.length > 0 ? ' [flags]' : ''}`,
      widthOf(style),
      'Usage  '.length,
    ),
    ...sectionLines(
      'Arguments',
      args.map(arg => [arg.name.toUpperCase(), arg.description ?? '']),
      style,
    ),
    ...sectionLines('Flags', commandFlags.map(flagRow), style),
    ...sectionLines('Global flags', flags.filter(flag => !commandFlags.includes(flag)).map(flagRow), style),
  ]
}

function flagRow(flag: LoadableCommand['flags'][string]): readonly [string, string] {
  const value = flag.type === 'option' ? ` ${(flag.helpValue ?? flag.name).toString().toUpperCase()}` : ''
  const short = flag.char ? `-${flag.char}, ` : '    '
  const options = flag.type === 'option' && flag.options ? ` (${flag.options.join(', ')})` : ''
  const defaultValue = flag.type === 'option' && flag.default !== undefined ? ` [${flag.default}]` : ''
  const negation = flag.type === 'boolean' && flag.allowNo ? '[no-]' : ''
  return [
    `${short}--${negation}${flag.name}${value}`,
    `${flag.summary ?? flag.description ?? ''}${options}${defaultValue}`,
  ]
}

function sectionLines(title: string, rows: (readonly [string, string])[], style: HelpStyle): string[] {
  return rows.length === 0 ? [] : ['', style.strong(title), ...listLines(rows, style)]
}

/** Formats names and descriptions as a list. If the terminal is narrow, each description is below its name. */
function listLines(rows: (readonly [string, string])[], style: HelpStyle, widthMin = 0): string[] {
  const widest = Math.max(widthMin, ...rows.map(([name]) => displayWidth(name)))
  const hangingIndent = widest + 4
  if (widthOf(style) - hangingIndent >= descriptionWidthMin)
    return rows.flatMap(([name, text]) =>
      wrapLine(`  ${pad(name, widest)}  ${style.dim(text)}`.trimEnd(), widthOf(style), hangingIndent),
    )
  return rows.flatMap(([name, text]) => [
    `  ${name.trimStart()}`,
    ...(text === ''
      ? []
      : wrapLine(`${' '.repeat(descriptionIndent)}${style.dim(text)}`, widthOf(style), descriptionIndent)),
  ])
}

function examplesOf(command: LoadableCommand): string[] {
  return (command.examples ?? []).map(example => (typeof example === 'string' ? example : example.command))
}

function summaryOf(command: LoadableCommand): string {
  return command.summary ?? ''
}

function commandName(id: string): string {
  return id.replaceAll(':', ' ')
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function toSentence(text: string): string {
  return `${capitalize(text)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** Wraps paragraphs, and keeps their indentation. */
function wrapText(text: string, style: HelpStyle): string[] {
  return text
    .split('\n')
    .flatMap(paragraph => wrapLine(paragraph, widthOf(style), /^ */.exec(paragraph)![0].length))
}

/** Returns an example, indented and wrapped for the terminal. */
function exampleLines(line: string, style: HelpStyle): string[] {
  return wrapCommandLine(`  ${line}`, style.columns)
}

function widthOf(style: HelpStyle): number {
  return Math.min(widthMax, style.columns)
}
