/**
 * Checks comments, texts for users and Markdown pages against the style rules, and that an exported name is
 * declared in one file only. Prints each violation with its file and line.
 *
 *     node --import tsx scripts/check-writing.ts [PATH...]
 *
 * `scripts/writing-allowed.json` lists exceptions, and paths that are not checked yet.
 *
 * @see CONTRIBUTING.md#style
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { type Node, parseSync } from 'oxc-parser'

/** A comment, a text for users, or a paragraph of a Markdown page. */
interface Passage {
  readonly kind: 'doc comment' | 'comment' | 'text' | 'command summary' | 'paragraph'
  readonly text: string
  /** Line of the first character, from 1. */
  readonly line: number
}

interface Violation {
  readonly line: number
  readonly message: string
}

interface Allowed {
  /** Paths to skip unless they are given as arguments. */
  readonly unchecked: readonly string[]
  /** Allowed words by file, spelled as in the file. */
  readonly words: Readonly<Record<string, readonly string[]>>
  /** Files that export lazy versions of functions, under the names that these functions have in their own files. */
  readonly bridges: readonly string[]
}

interface ExportedName {
  readonly name: string
  readonly file: string
  readonly line: number
}

const emptyOpener = /^(?:Who|Whose|What|Whether|Where|That|The same)\b/
const troubleWords = [
  'told',
  'tells',
  'nobody',
  'somebody',
  'who asks',
  'what stands',
  'stands for',
  'stands beside',
  'goes by',
  'leads to',
  'at hand',
  'in so many words',
  'of its own',
  'is none',
  'as it were',
  'whoever',
  'thereof',
  'beside it',
  'nothing but',
]
/** White space between two words, which can include a line break and the asterisk of a comment. */
const blank = String.raw`\s+(?:\* )?`
const troubleWord = new RegExp(String.raw`\b(?:${troubleWords.join('|').replaceAll(' ', blank)})\b`, 'gi')
const summaryCharsMax = 60

const allowed = JSON.parse(readFileSync(new URL('writing-allowed.json', import.meta.url), 'utf8')) as Allowed
const named = process.argv.slice(2)
const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...named]
const files = execFileSync('git', listing, { encoding: 'utf8' })
  .split('\0')
  .filter(file => file !== '' && existsSync(file))
  .filter(file => named.length > 0 || !allowed.unchecked.some(path => file.startsWith(path)))

let count = 0
for (const file of files) {
  for (const { line, message } of passagesOf(file).flatMap(passage => violationsIn(passage, file))) {
    console.log(`${file}:${line}: ${message}`)
    count++
  }
}
const fileOfExport = new Map<string, string>()
const declaring = sourceFiles().filter(file => !allowed.bridges.includes(file))
for (const { name, file, line } of declaring.flatMap(exportedNamesOf)) {
  const first = fileOfExport.get(name) ?? file
  fileOfExport.set(name, first)
  if (first === file) continue
  console.log(`${file}:${line}: "${name}" is also exported by ${first}`)
  count++
}
console.log(`${count} violations of the rules of style in ${files.length} files`)
if (count > 0) process.exitCode = 1

function violationsIn({ kind, text, line }: Passage, file: string): Violation[] {
  const found: Violation[] = []
  const opener = kind === 'doc comment' ? emptyOpener.exec(text.replace(/^[\s*]+/, '')) : null
  if (opener) found.push({ line, message: `a doc comment begins with "${opener[0]}"` })
  for (const { 0: word, index } of text.matchAll(troubleWord)) {
    if (allowed.words[file]?.includes(word)) continue
    found.push({ line: line + lineBreaksIn(text.slice(0, index)), message: `"${word}" in a ${kind}` })
  }
  const isProse = kind !== 'text' && kind !== 'command summary'
  if (isProse && (text.match(/\bso that\b/gi)?.length ?? 0) > 1)
    found.push({ line, message: `"so that" more than once in a ${kind}` })
  if (kind === 'command summary' && text.length > summaryCharsMax)
    found.push({ line, message: `a command summary has ${text.length} of ${summaryCharsMax} characters` })
  return found
}

function passagesOf(file: string): Passage[] {
  if (file.endsWith('.md')) return paragraphsOf(readFileSync(file, 'utf8'))
  if (!/\.(?:[cm]?[jt]s|tsx)$/.test(file)) return []
  const source = readFileSync(file, 'utf8')
  const { program, comments } = parseSync(file, source)
  const lineOf = ({ start }: { start: number }) => 1 + lineBreaksIn(source.slice(0, start))
  const ofComments = comments.map((comment): Passage => {
    const isDoc = comment.type === 'Block' && comment.value.startsWith('*')
    return { kind: isDoc ? 'doc comment' : 'comment', text: comment.value, line: lineOf(comment) }
  })
  if (!/^(?:src|commands)\//.test(file)) return ofComments
  return [
    ...ofComments,
    ...textsIn(program).map(({ kind, text, node }) => ({ kind, text, line: lineOf(node) })),
  ]
}

/** Returns the modules of the product, without those that are not checked yet. */
function sourceFiles(): string[] {
  return files.filter(file => /^(?:src|commands)\/.*(?<!\.d)\.tsx?$/.test(file))
}

/** Returns the names that a module declares and exports. Names of re-exports are declared elsewhere. */
function exportedNamesOf(file: string): ExportedName[] {
  const source = readFileSync(file, 'utf8')
  return parseSync(file, source).program.body.flatMap(statement => {
    if (statement.type !== 'ExportNamedDeclaration' || !statement.declaration) return []
    const { declaration } = statement
    const declared = 'declarations' in declaration ? declaration.declarations : [declaration]
    const line = 1 + lineBreaksIn(source.slice(0, statement.start))
    return declared.flatMap(({ id }) => (id?.type === 'Identifier' ? [{ name: id.name, file, line }] : []))
  })
}

interface Text extends Pick<Passage, 'text'> {
  readonly kind: 'text' | 'command summary'
  readonly node: Node
}

/** Returns the strings of a program that contain a space, with a mark for command summaries. */
function textsIn(node: unknown, kind: Text['kind'] = 'text'): Text[] {
  if (Array.isArray(node)) return node.flatMap(child => textsIn(child))
  if (!isNode(node) || node.type === 'ImportDeclaration') return []
  if (node.type === 'Literal' || node.type === 'TemplateElement') {
    const text = node.type === 'Literal' ? node.value : node.value.cooked
    return typeof text === 'string' && text.includes(' ') ? [{ kind, text, node }] : []
  }
  const isSummary =
    node.type === 'PropertyDefinition' && node.static && 'name' in node.key && node.key.name === 'summary'
  return Object.values(node).flatMap(child => textsIn(child, isSummary ? 'command summary' : 'text'))
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value
}

/** Returns the paragraphs of a Markdown page, without code. */
function paragraphsOf(page: string): Passage[] {
  const paragraphs: Passage[] = []
  let paragraph: string[] = []
  let isCode = false
  const lines = page.split('\n')
  for (const [at, line] of [...lines, ''].entries()) {
    const isFence = /^\s*```/.test(line)
    if (isFence) isCode = !isCode
    if (!isFence && !isCode && line.trim() !== '') {
      paragraph.push(line.replaceAll(/`[^`]*`/g, '``'))
      continue
    }
    if (paragraph.length > 0)
      paragraphs.push({ kind: 'paragraph', text: paragraph.join('\n'), line: at + 1 - paragraph.length })
    paragraph = []
  }
  return paragraphs
}

function lineBreaksIn(text: string): number {
  return text.split('\n').length - 1
}
