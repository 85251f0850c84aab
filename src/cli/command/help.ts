import type { Config } from '@oclif/core/config'
import { columnsSetting } from '../environment.ts'
import type { Io } from '../io.ts'
import { type Style, styleFor } from '../terminal/style.ts'
import { displayWidth, pad } from '../terminal/terminal-text.ts'
import { wrapCommandLine, wrapLine } from '../terminal/wrap.ts'

type Loadable = Config['commands'][number]

/** Commands in the help of `wb` without arguments, in this order. */
const dayOne = ['quickstart', 'kb ingest', 'kb search', 'kb list', 'chat', 'serve', 'login', 'status']

/** Order of commands and topics in `wb --help`. Others follow alphabetically. */
const order = [
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
const verbs = [
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

const opening = 'Search your own documents on this machine, and get answers with citations.'
const widthMax = 100
/** Minimum width of the name column in `wb --help`, in cells, to align its lists. */
const nameWidth = 18
/** Minimum width of a description beside its name, in cells. */
const besideMin = 30
/** Indentation of a description below its name, in cells. */
const below = 6

/** Style and width of printed help. */
interface Look extends Style {
  /** Width of the terminal, in cells; infinite for a file. */
  readonly columns: number
}

/**
 * Returns the style and width for help on stdout.
 *
 * @param typed  words of the command line
 */
export function helpLook({ stdout, stderr, env }: Io, typed: readonly string[]): Look {
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
  look: Look,
): string | undefined {
  const commands = config.commands.filter(({ hidden }) => !hidden).sort((a, b) => byVerb(a.id, b.id))
  if (words.length === 0)
    return page(scope === 'dayOne' ? firstPage(commands, look) : wholePage(commands, config, look))
  const id = words.join(':')
  const command = commands.find(candidate => candidate.id === id)
  if (command) return page(commandPage(command, look))
  for (const topic of [id, words[0]!]) {
    const inTopic = commands.filter(candidate => candidate.id.startsWith(`${topic}:`))
    if (inTopic.length > 0) return page(topicPage(topic, inTopic, config, look))
  }
  return undefined
}

function page(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

function firstPage(commands: Loadable[], look: Look): string[] {
  const shown = dayOne.flatMap(name => commands.filter(({ id }) => spoken(id) === name))
  return [
    ...wrapped(opening, look),
    '',
    ...exampleLines('wb quickstart ./my-folder', look),
    ...exampleLines('wb kb search "where is my data stored"', look),
    '',
    ...listing(
      shown.map(command => [spoken(command.id), summaryOf(command)]),
      look,
    ),
    '',
    ...wrapped('  Use wb --help for all commands, and wb COMMAND --help for one command.', look).map(
      look.dim,
    ),
  ]
}

function wholePage(commands: Loadable[], config: Config, look: Look): string[] {
  const names = [...new Set(commands.map(({ id }) => id.split(':')[0]!))].sort(byOrder)
  const alone = (name: string) => commands.some(({ id }) => id === name)
  const rows = (own: Loadable[]) =>
    listing(
      own.map(command => [spoken(command.id), summaryOf(command)]),
      look,
      nameWidth,
    )
  const topics = names.filter(name => !alone(name))
  const sections = topics.map(topic => [
    ...wrapped(capital(topicSummary(config, topic)), look).map(look.strong),
    ...rows(commands.filter(({ id }) => id.startsWith(`${topic}:`))),
  ])
  return [
    ...wrapped(opening, look),
    '',
    ...exampleLines('wb quickstart ./my-folder', look),
    ...exampleLines('wb kb search handbook "where is my data stored" --json', look),
    '',
    ...rows(names.flatMap(name => commands.filter(({ id }) => id === name))),
    ...sections.flatMap(lines => ['', ...lines]),
    '',
    ...wrapped('  Use wb COMMAND --help for arguments, flags and examples.', look).map(look.dim),
  ]
}

function byOrder(a: string, b: string): number {
  const place = (topic: string) => (order.includes(topic) ? order.indexOf(topic) : order.length)
  return place(a) - place(b) || a.localeCompare(b)
}

function byVerb(a: string, b: string): number {
  const [topic = '', ...words] = a.split(':')
  const [otherTopic = '', ...others] = b.split(':')
  const place = (word: string | undefined) => (word === undefined ? -1 : verbs.indexOf(word))
  return words.reduce(
    (order, word, at) => order || place(word) - place(others[at]),
    topic.localeCompare(otherTopic),
  )
}

function topicSummary(config: Config, topic: string): string {
  return config.topics.find(({ name }) => name === topic)?.description ?? topic
}

function topicPage(topic: string, commands: Loadable[], config: Config, look: Look): string[] {
  const examples = commands.flatMap(command => examplesOf(command).slice(0, 1)).slice(0, 2)
  return [
    ...wrapped(sentence(topicSummary(config, topic)), look),
    '',
    ...examples.flatMap(line => exampleLines(line, look)),
    '',
    ...listing(
      commands.map(command => [spoken(command.id), summaryOf(command)]),
      look,
    ),
  ]
}

function commandPage(command: Loadable, look: Look): string[] {
  const args = Object.values(command.args).filter(({ hidden }) => !hidden)
  const flags = Object.values(command.flags).filter(({ hidden }) => !hidden)
  const usage = args
    .map(arg => (arg.required ? arg.name.toUpperCase() : `[${arg.name.toUpperCase()}]`))
    .join(' ')
  const called = command.usage?.toString() ?? `${spoken(command.id)}${usage ? ` ${usage}` : ''}`
  const own = flags.filter(({ helpGroup }) => helpGroup !== 'GLOBAL')
  return [
    ...wrapped(sentence(summaryOf(command)), look),
    '',
    ...examplesOf(command).flatMap(line => exampleLines(line, look)),
    '',
    ...(command.description ? [...wrapped(command.description, look), ''] : []),
    ...wrapLine(
      `${look.strong('Usage')}  wb ${called}${own.length > 0 ? ' [flags]' : ''}`,
      width(look),
      'Usage  '.length,
    ),
    ...section(
      'Arguments',
      args.map(arg => [arg.name.toUpperCase(), arg.description ?? '']),
      look,
    ),
    ...section('Flags', own.map(flagRow), look),
    ...section('Global flags', flags.filter(flag => !own.includes(flag)).map(flagRow), look),
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

function section(title: string, rows: (readonly [string, string])[], look: Look): string[] {
  return rows.length === 0 ? [] : ['', look.strong(title), ...listing(rows, look)]
}

/** Returns names with their descriptions beside them, or below them if the terminal is too narrow. */
function listing(rows: (readonly [string, string])[], look: Look, widthMin = 0): string[] {
  const widest = Math.max(widthMin, ...rows.map(([name]) => displayWidth(name)))
  const hang = widest + 4
  if (width(look) - hang >= besideMin)
    return rows.flatMap(([name, text]) =>
      wrapLine(`  ${pad(name, widest)}  ${look.dim(text)}`.trimEnd(), width(look), hang),
    )
  return rows.flatMap(([name, text]) => [
    `  ${name.trimStart()}`,
    ...(text === '' ? [] : wrapLine(`${' '.repeat(below)}${look.dim(text)}`, width(look), below)),
  ])
}

function examplesOf(command: Loadable): string[] {
  return (command.examples ?? []).map(example => (typeof example === 'string' ? example : example.command))
}

function summaryOf(command: Loadable): string {
  return command.summary ?? ''
}

function spoken(id: string): string {
  return id.replaceAll(':', ' ')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function sentence(text: string): string {
  return `${capital(text)}${/[.!?]$/.test(text) ? '' : '.'}`
}

/** Wraps the paragraphs of a text, and keeps their indentation. */
function wrapped(text: string, look: Look): string[] {
  return text
    .split('\n')
    .flatMap(paragraph => wrapLine(paragraph, width(look), /^ */.exec(paragraph)![0].length))
}

/** Returns an example, indented and wrapped for the terminal. */
function exampleLines(line: string, look: Look): string[] {
  return wrapCommandLine(`  ${line}`, look.columns)
}

function width(look: Look): number {
  return Math.min(widthMax, look.columns)
}
