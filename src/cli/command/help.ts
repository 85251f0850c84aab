import type { Config } from '@oclif/core/config'
import { columnsSaid } from '../environment.ts'
import { type Style, styleFor } from '../terminal/style.ts'
import { displayWidth, pad } from '../terminal/terminal-text.ts'
import { wrapCommandLine, wrapLine } from '../terminal/wrap.ts'

type Loadable = Config['commands'][number]

/** What matters on day one, in the order in which a person needs it. */
const dayOne = ['quickstart', 'kb ingest', 'kb search', 'kb list', 'chat', 'serve', 'login', 'status']

/** The order in which a person needs the rest; what is not named follows by the alphabet. */
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

/** The order within a topic, of its subtopics and of its commands. */
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

const opening = 'wb searches your own documents and answers with passages to cite, on this machine.'
const widthMax = 100
/** Of names in lists that stand below each other. */
const nameWidth = 18
/** Cells that what is said beside a name has at least. */
const besideMin = 30
/** Blanks before what is said below a name. */
const below = 6

/**
 * Help on a command, a topic, or everything.
 *
 * @param scope  `dayOne` is what `wb` alone shows
 * @param words  command or topic; none for the whole
 * @returns undefined when there is no such command or topic
 */
export function helpText(
  config: Config,
  scope: 'dayOne' | 'all',
  words: readonly string[],
): string | undefined {
  const style = styleFor(process.stdout.isTTY === true && !process.argv.includes('--no-color'))
  const commands = config.commands.filter(({ hidden }) => !hidden).sort((a, b) => byVerb(a.id, b.id))
  if (words.length === 0)
    return page(scope === 'dayOne' ? firstPage(commands, style) : wholePage(commands, config, style))
  const id = words.join(':')
  const command = commands.find(candidate => candidate.id === id)
  if (command) return page(commandPage(command, style))
  for (const topic of [id, words[0]!]) {
    const inTopic = commands.filter(candidate => candidate.id.startsWith(`${topic}:`))
    if (inTopic.length > 0) return page(topicPage(topic, inTopic, config, style))
  }
  return undefined
}

function page(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`
}

function firstPage(commands: Loadable[], style: Style): string[] {
  const shown = dayOne.flatMap(name => commands.filter(({ id }) => spoken(id) === name))
  return [
    ...wrapped(opening),
    '',
    ...exampleLines('wb quickstart ./my-folder'),
    ...exampleLines('wb kb search "where is my data stored"'),
    '',
    ...listing(
      shown.map(command => [spoken(command.id), summaryOf(command)]),
      style,
    ),
    '',
    ...wrapped('  wb --help shows every command, wb COMMAND --help one of them.').map(style.dim),
  ]
}

function wholePage(commands: Loadable[], config: Config, style: Style): string[] {
  const names = [...new Set(commands.map(({ id }) => id.split(':')[0]!))].sort(byOrder)
  const alone = (name: string) => commands.some(({ id }) => id === name)
  const rows = (own: Loadable[]) =>
    listing(
      own.map(command => [spoken(command.id), summaryOf(command)]),
      style,
      nameWidth,
    )
  const topics = names.filter(name => !alone(name))
  const sections = topics.map(topic => [
    ...wrapped(capital(topicSummary(config, topic))).map(style.strong),
    ...rows(commands.filter(({ id }) => id.startsWith(`${topic}:`))),
  ])
  return [
    ...wrapped(opening),
    '',
    ...exampleLines('wb quickstart ./my-folder'),
    ...exampleLines('wb kb search handbook "where is my data stored" --json'),
    '',
    ...rows(names.flatMap(name => commands.filter(({ id }) => id === name))),
    ...sections.flatMap(lines => ['', ...lines]),
    '',
    ...wrapped('  wb COMMAND --help shows arguments, flags and examples.').map(style.dim),
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

function topicPage(topic: string, commands: Loadable[], config: Config, style: Style): string[] {
  const examples = commands.flatMap(command => examplesOf(command).slice(0, 1)).slice(0, 2)
  return [
    ...wrapped(sentence(topicSummary(config, topic))),
    '',
    ...examples.flatMap(exampleLines),
    '',
    ...listing(
      commands.map(command => [spoken(command.id), summaryOf(command)]),
      style,
    ),
  ]
}

function commandPage(command: Loadable, style: Style): string[] {
  const args = Object.values(command.args).filter(({ hidden }) => !hidden)
  const flags = Object.values(command.flags).filter(({ hidden }) => !hidden)
  const usage = args
    .map(arg => (arg.required ? arg.name.toUpperCase() : `[${arg.name.toUpperCase()}]`))
    .join(' ')
  const called = command.usage?.toString() ?? `${spoken(command.id)}${usage ? ` ${usage}` : ''}`
  const own = flags.filter(({ helpGroup }) => helpGroup !== 'GLOBAL')
  return [
    ...wrapped(sentence(summaryOf(command))),
    '',
    ...examplesOf(command).flatMap(exampleLines),
    '',
    ...(command.description ? [...wrapped(command.description), ''] : []),
    ...wrapLine(
      `${style.strong('Usage')}  wb ${called}${own.length > 0 ? ' [flags]' : ''}`,
      width(),
      'Usage  '.length,
    ),
    ...section(
      'Arguments',
      args.map(arg => [arg.name.toUpperCase(), arg.description ?? '']),
      style,
    ),
    ...section('Flags', own.map(flagRow), style),
    ...section('Flags of every command', flags.filter(flag => !own.includes(flag)).map(flagRow), style),
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

function section(title: string, rows: (readonly [string, string])[], style: Style): string[] {
  return rows.length === 0 ? [] : ['', style.strong(title), ...listing(rows, style)]
}

/** Names and what they mean beside them; below them, where a narrow terminal leaves too little beside. */
function listing(rows: (readonly [string, string])[], style: Style, widthMin = 0): string[] {
  const widest = Math.max(widthMin, ...rows.map(([name]) => displayWidth(name)))
  const hang = widest + 4
  if (width() - hang >= besideMin)
    return rows.flatMap(([name, text]) =>
      wrapLine(`  ${pad(name, widest)}  ${style.dim(text)}`.trimEnd(), width(), hang),
    )
  return rows.flatMap(([name, text]) => [
    `  ${name.trimStart()}`,
    ...(text === '' ? [] : wrapLine(`${' '.repeat(below)}${style.dim(text)}`, width(), below)),
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

/** Paragraphs of a text in lines that are comfortable to read. */
function wrapped(text: string): string[] {
  return text.split('\n').flatMap(paragraph => wrapLine(paragraph, width(), /^ */.exec(paragraph)![0].length))
}

/** Returns an example, indented and wrapped for the terminal. */
function exampleLines(line: string): string[] {
  return wrapCommandLine(`  ${line}`, columns())
}

function width(): number {
  return Math.min(widthMax, columns())
}

/** Width of the terminal that shows the help, also through a pager; infinite for a file. */
function columns(): number {
  return process.stdout.columns ?? columnsSaid() ?? process.stderr.columns ?? Number.POSITIVE_INFINITY
}
