/**
 * Writes the links to tests in docs/requirements.md. The requirements themselves are edited there by hand.
 *
 *   npx tsx scripts/write-requirements-doc.ts
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { errorCodes } from '../src/contract/errors.ts'

const page = 'docs/requirements.md'
/** Test that provokes every registered code. */
const everyCode = 'test/wire/every-code.test.ts'

/** A requirement with its proof. */
interface Requirement {
  readonly id: string
  readonly text: string
  /** Links to tests, or `planned: …` if the feature is not implemented yet. */
  readonly proof: string
}

/** Paths of tests by the id of the requirement that they cite. */
export type Citations = ReadonlyMap<string, ReadonlySet<string>>

const row = /^\| <a id="(?<id>S[\w.-]+)"><\/a>\S+ \| (?<text>.*) \| (?<proof>[^|]*) \|$/
const citation = /\bS\d(?:\.\d)?-(?:\d\d|[a-z][a-z_]+)\b/g
/** Placeholder for the id of an error code, in titles of tests that run for several codes. */
const templated = 'S7.3-%s'
const comment = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm

/** Returns the requirements of the page, in order. */
export function requirementsIn(text: string): Requirement[] {
  return text.split('\n').flatMap(line => {
    const groups = row.exec(line)?.groups as Requirement | undefined
    return groups ? [groups] : []
  })
}

/**
 * Finds the requirements that tests cite in titles and tables. Comments do not count.
 *
 * @param requirements  requirements of the page; a title with a placeholder may cite several
 */
export function findCitations(requirements: readonly Requirement[]): Citations {
  const known = new Set(requirements.map(({ id }) => id))
  const citations = new Map<string, Set<string>>()
  for (const file of testFiles()) {
    const code = readFileSync(file, 'utf8').replace(comment, '')
    const ids = code.match(citation) ?? []
    const isTemplated = file === everyCode || code.includes(templated)
    const expanded = isTemplated ? codesOf(file, code).filter(id => known.has(id)) : []
    for (const id of [...ids, ...expanded]) citations.set(id, (citations.get(id) ?? new Set()).add(file))
  }
  return citations
}

function testFiles(): string[] {
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => join('test', name))
    .sort()
}

/** Returns the ids that a title with a placeholder cites: those of the codes that occur in the file. */
function codesOf(file: string, code: string): string[] {
  const named = new Set(code.match(/\w+/g))
  // This test provokes all codes except those that its text contains.
  return errorCodes.filter(name => named.has(name) !== (file === everyCode)).map(name => `S7.3-${name}`)
}

/** Returns the page with links to the tests of `citations`. */
export function requirementsDoc(text: string, citations: Citations): string {
  const lines = text.split('\n').map(line => {
    const found = row.exec(line)?.groups as Requirement | undefined
    if (!found || isPlanned(found)) return line
    const { id, text, proof } = found
    const files = citations.get(id)
    return line.replace(`| ${text} | ${proof} |`, () => `| ${text} | ${files ? linksTo(files) : ''} |`)
  })
  return lines.join('\n')
}

/** Returns true if the feature of a requirement is not implemented yet. */
export function isPlanned({ proof }: Requirement): boolean {
  return proof.startsWith('planned: ')
}

function linksTo(files: ReadonlySet<string>): string {
  return [...files].map(file => `[${nameOf(file)}](../${file})`).join(', ')
}

/** Returns a short name of a test: `wire/protocol` for `test/wire/protocol.test.ts`. */
function nameOf(file: string): string {
  return join(file.split('/').slice(1, -1).join('/'), basename(file, '.test.ts'))
}

if (import.meta.filename === process.argv[1]) {
  const text = readFileSync(page, 'utf8')
  writeFileSync(page, requirementsDoc(text, findCitations(requirementsIn(text))))
}
