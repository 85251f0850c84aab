import type { Config } from '@oclif/core/config'
import { columnsSetting } from '../environment.ts'
import type { Io } from '../io.ts'
import { type Style, styleFor } from '../terminal/style.ts'
import { displayWidth, pad } from '../terminal/terminal-text.ts'
import { wrapCommandLine, wrapLine } from '../terminal/wrap.ts'

type Loadable = Config['commands'][number]

/** Commands in the help of `wb` without arguments, in this order. */
const basicCommands = ['quickstart', 'kb ingest', 'kb search', 'kb list', 'chat', 'serve', 'login', 'status']

/** Order of commands and topics in `wb --help`. Others follow alphabetically. */
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
const verbOrder = [
  'principals',
  'policy',
  'status',
  'token',
  'list',
  'create',
  'add',
  'ingest',
  'search',
  'show',
  'export',
  'watch',
  'chunks',
  'preview',
  'validate',
  'path',
  'update',
  'use',
  'rename',
  'test',
  'review',
  'tools',
  'models',
  'templates',
  'adoptable',
  'audit',
  'follow',
  'allow',
  'releases',
  'disallow',
  'rotate',
  'revoke',
  'cancel',
  'delete',
  'remove',
]

const introduction = 'Search your own documents on this machine, and get answers with citations.'
const widthMax = 100
/** Minimum width of the name column in `wb --help`, in cells, to align its lists. */
const nameWidthMin = 18
/** Minimum width of a description beside its name, in cells. */
const descriptionWidthMin = 30
/** Indentation of a description below its name, in cells. */
const descriptionIndent = 6

/** Style and width of printed help. */
interface HelpStyle extends Style {
  /** Width of the terminal, in cells; infinite for a file. */
  readonly columns: number
}

/**
 * Returns the style and width for help on stdout.
 *
 * @param typed  words of the command line
 */
export function helpStyle({ stdout, stderr, env }: Io, typed: readonly string[]): HelpStyle {
  const columns = stdout.columns ?? columnsSetting(env) ?? stderr.columns ?? Number.POSITIVE_INFINITY
  return { ...styleFor(stdout.isTTY === true && !typed.includes('--no-color')), columns }
}

/**
 * Returns the help of a command, a topic, or all commands.
 *
 * @param scope  extent of the help without words; `dayOne` for `wb` without arguments
 * @param words  command or topic; empty for all commands
 * @returns undefined if there is no such command or topic
 */
export function helpText(
  config: Config,
  scope: 'dayOne' | 'all',
  words: readonly string[],
  look: HelpStyle,
): string | undefined {
  const commands = config.commands.filter(({ hidden }) => !hidden).sort((a, b) => compareCommands(a.id, b.id))
  if (words.length === 0)
    return joinLines(scope === 'dayOne' ? basicPage(commands, look) : allCommandsPage(commands, config, look))
  const id = words.join(':')
  const command = commands.find(candidate => candidate.id === id)
  if (command) return joinLines(commandPage(command, look))
  for (const topic of [id, words[0]!]) {
    const inTopic = commands.filter(candidate => candidate.id.startsWith(`${topic}:`))
    if (inTopic.length > 0) return joinLines(topicPage(topic, inTopic, config, look))
  }
  return undefined
}

function joinLines(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

function basicPage(commands: Loadable[], look: HelpStyle): string[] {
  const shown = basicCommands.flatMap(name => commands.filter(({ id }) => typedName(id) === name))
  return [
    ...wrapText(introduction, look),
    '',
    ...exampleLines('wb quickstart ./my-folder', look),
    ...exampleLines('wb kb search "where is my data stored"', look),
    '',
    ...listLines(
      shown.map(command => [typedName(command.id), summaryOf(command)]),
      look,
    ),
    '',
    ...wrapText('  Use wb --help for all commands, and wb COMMAND --help for one command.', look).map(
      look.dim,
    ),
  ]
}

function allCommandsPage(commands: Loadable[], config: Config, look: HelpStyle): string[] {
  const names = [...new Set(commands.map(({ id }) => id.split(':')[0]!))].sort(compareTopics)
  const isCommand = (name: string) => commands.some(({ id }) => id === name)
  const rows = (own: Loadable[]) =>
    listLines(
      own.map(command => [typedName(command.id), summaryOf(command)]),
      look,
      nameWidthMin,
    )
  const topics = names.filter(name => !isCommand(name))
  const sections = topics.map(topic => [
    ...wrapText(capitalize(topicSummary(config, topic)), look).map(look.strong),
    ...rows(commands.filter(({ id }) => id.startsWith(`${topic}:`))),
  ])
  return [
    ...wrapText(introduction, look),
    '',
    ...exampleLines('wb quickstart ./my-folder', look),
    ...exampleLines('wb kb search handbook "where is my data stored" --json', look),
    '',
    ...rows(names.flatMap(name => commands.filter(({ id }) => id === name))),
    ...sections.flatMap(lines => ['', ...lines]),
    '',
    ...wrapText('  Use wb COMMAND --help for arguments, flags and examples.', look).map(look.dim),
  ]
}

function compareTopics(a: string, b: string): number {
  const place = (topic: string) =>
    topicOrder.includes(topic) ? topicOrder.indexOf(topic) : topicOrder.length
  return place(a) - place(b) || a.localeCompare(b)
}

function compareCommands(a: string, b: string): number {
  const [topic = '', ...words] = a.split(':')
  const [otherTopic = '', ...others] = b.split(':')
  const place = (word: string | undefined) => (word === undefined ? -1 : verbOrder.indexOf(word))
  return words.reduce(
    (order, word, at) => order || place(word) - place(others[at]),
    topic.localeCompare(otherTopic),
  )
}

function topicSummary(config: Config, topic: string): string {
  return config.topics.find(({ name }) => name === topic)?.description ?? topic
}

function topicPage(topic: string, commands: Loadable[], config: Config, look: HelpStyle): string[] {
  const examples = commands.flatMap(command => examplesOf(command).slice(0, 1)).slice(0, 2)
  return [
    ...wrapText(toSentence(topicSummary(config, topic)), look),
    '',
    ...examples.flatMap(line => exampleLines(line, look)),
    '',
    ...listLines(
      commands.map(command => [typedName(command.id), summaryOf(command)]),
      look,
    ),
  ]
}

function commandPage(command: Loadable, look: HelpStyle): string[] {
  const args = Object.values(command.args).filter(({ hidden }) => !hidden)
  const flags = Object.values(command.flags).filter(({ hidden }) => !hidden)
  const usage = args
    .map(arg => (arg.required ? arg.name.toUpperCase() : `[${arg.name.toUpperCase()}]`))
    .join(' ')
  const usageLine = command.usage?.toString() ?? `${typedName(command.id)}${usage ? ` ${usage}` : ''}`
  const own = flags.filter(({ helpGroup }) => helpGroup !== 'GLOBAL')
  return [
    ...wrapText(toSentence(summaryOf(command)), look),
    '',
    ...examplesOf(command).flatMap(line => exampleLines(line, look)),
    '',
    ...(command.description ? [...wrapText(command.description, look), ''] : []),
    ...wrapLine(
      `${look.strong('Usage')}  wb ${usageLine}${own.length > 0 ? ' [flags]' : ''}`,
      widthOf(look),
      'Usage  '.length,
    ),
    ...sectionLines(
      'Arguments',
      args.map(arg => [arg.name.toUpperCase(), arg.description ?? '']),
      look,
    ),
    ...sectionLines('Flags', own.map(flagRow), look),
    ...sectionLines('Global flags', flags.filter(flag => !own.includes(flag)).map(flagRow), look),
  ]
}

function flagRow(flag: Loadable['flags'][string]): readonly [string, string] {
  const value = flag.type === 'option' ? ` ${(flag.helpValue ?? flag.name).toString().toUpperCase()}` : ''
  const short = flag.char ? `-${flag.char}, ` : '    '
  const options = flag.type === 'option' && flag.options ? ` (${flag.options.join(', ')})` : ''
  const standard = flag.type === 'option' && flag.default !== undefined ? ` [${flag.default}]` : ''
  const both = flag.type === 'boolean' && flag.allowNo ? '[no-]' : ''
  return [
    `${short}--${both}${flag.name}${value}`,
    `${flag.summary ?? flag.description ?? ''}${options}${standard}`,
  ]
}

function sectionLines(title: string, rows: (readonly [string, string])[], look: HelpStyle): string[] {
  return rows.length === 0 ? [] : ['', look.strong(title), ...listLines(rows, look)]
}

/** Returns names with their descriptions beside them, or below them if the terminal is too narrow. */
function listLines(rows: (readonly [string, string])[], look: HelpStyle, widthMin = 0): string[] {
  const widest = Math.max(widthMin, ...rows.map(([name]) => displayWidth(name)))
  const hang = widest + 4
  if (widthOf(look) - hang >= descriptionWidthMin)
    return rows.flatMap(([name, text]) =>
      wrapLine(`  ${pad(name, widest)}  ${look.dim(text)}`.trimEnd(), widthOf(look), hang),
    )
  return rows.flatMap(([name, text]) => [
    `  ${name.trimStart()}`,
    ...(text === ''
      ? []
      : wrapLine(`${' '.repeat(descriptionIndent)}${look.dim(text)}`, widthOf(look), descriptionIndent)),
  ])
}

function examplesOf(command: Loadable): string[] {
  return (command.examples ?? []).map(example => (typeof example === 'string' ? example : example.command))
}

function summaryOf(command: Loadable): string {
  return command.summary ?? ''
}

function typedName(id: string): string {
  return id.replaceAll(':', ' ')
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function toSentence(text: string): string {
  return `${capitalize(text)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** Wraps the paragraphs of a text, and keeps their indentation. */
function wrapText(text: string, look: HelpStyle): string[] {
  return text
    .split('\n')
    .flatMap(paragraph => wrapLine(paragraph, widthOf(look), /^ */.exec(paragraph)![0].length))
}

/** Returns an example, indented and wrapped for the terminal. */
function exampleLines(line: string, look: HelpStyle): string[] {
  return wrapCommandLine(`  ${line}`, look.columns)
}

function widthOf(look: HelpStyle): number {
  return Math.min(widthMax, look.columns)
}
