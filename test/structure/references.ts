import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** A reference in the repository. */
interface Reference {
  /** `path:line: text` */
  readonly at: string
  readonly target: string
}

const folders = ['.ci', 'bench', 'bin', 'commands', 'docs', 'install', 'scripts', 'src', 'test']
const pages = ['CHANGELOG.md', 'CONTRIBUTING.md', 'README.md']
/** Test data, which is not checked. */
const fixtures = 'test/fixtures/'

/** References by section or number to documents that are not in the repository. */
const outside = new RegExp(
  [
    /\bthe specification\b(?! of\b)/,
    /\b(?:specification|contract|sheet|security|decisions?) \d/,
    /\bcontract: [\w -]+/,
    /@see (?:the )?(?:specification|contract|sheet|house|design)\b/,
    /\bthe (?:sheets?|house|design (?:says|papers?))\b/,
    /\bdesign\/\w/,
    /\bsequence \d+[:,]/,
    /(?<!\d )\(section \d/,
    /\bshared\/(?:spec|contract|design|data)\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
)
const requirement = /\bS\d(?:\.\d)?-(?:\d\d|[a-z][a-z_]+)\b/g
const rule = /\bsecurity rules? (\d+)/g
/** The path of a page in a comment, or an anchor in code. */
const page =
  /(?<![\w/])docs\/(?<=^\s*(?:\/?\*|\/\/|#).*)[\w/.-]+\.md(?:#[\w.-]*\w)?|\bdocs\/[\w/.-]+\.md#[\w.-]*\w/g
const inlineCode = /`[^`]*`/g
const link = /(?<!!)\[[^\]]*\]\((?!\w+:)([^)\s]+)\)/g

const lines = [...folders.flatMap(filesBelow), ...pages]
  .filter(file => /\.(?:[cm]?[jt]sx?|md|sh)$|^\.ci\//.test(file) && !file.startsWith(fixtures))
  .flatMap(file =>
    readFileSync(file, 'utf8')
      .split('\n')
      .map((text, at) => ({ file, text, at: `${file}:${at + 1}: ${text.trim()}` })),
  )

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

function findAll(pattern: RegExp, isSource: (file: string) => boolean = () => true): Reference[] {
  return lines
    .filter(({ file }) => isSource(file))
    .flatMap(({ text, at }) =>
      [...text.matchAll(pattern)].map(([whole, part]) => ({ at, target: part ?? whole })),
    )
}

/** Returns references to documents that a contributor cannot open. */
export function outsideReferences(): string[] {
  return findAll(outside).map(({ at }) => at)
}

/** Returns references to requirements and security rules that do not exist. */
export function unknownIds(requirements: readonly string[], rulesCount: number): string[] {
  const known = new Set(requirements)
  return [
    ...findAll(requirement).filter(({ target }) => !known.has(target)),
    ...findAll(rule).filter(({ target }) => Number(target) < 1 || Number(target) > rulesCount),
  ].map(({ at }) => at)
}

/** Returns references to missing pages and anchors: paths in code, links in Markdown. */
export function brokenLinks(): string[] {
  const isPage = (file: string) => file.endsWith('.md')
  const named = findAll(page, file => !isPage(file)).filter(({ target }) => !resolves(target))
  const linked = lines
    .filter(({ file }) => isPage(file))
    .flatMap(({ file, text, at }) =>
      [...text.replace(inlineCode, '').matchAll(link)].map(([, target]) => ({
        at,
        target: target!.startsWith('#') ? `${file}${target}` : normalize(join(dirname(file), target!)),
      })),
    )
    .filter(({ target }) => !resolves(target))
  return [...named, ...linked].map(({ at }) => at)
}

function resolves(target: string): boolean {
  const [path, anchor] = target.split('#') as [string, string?]
  if (!existsSync(path)) return false
  return anchor === undefined || anchorsOf(path).has(anchor)
}

const anchors = new Map<string, ReadonlySet<string>>()

/** Returns the anchors of a page: explicit ones and those that GitHub creates for headings. */
function anchorsOf(path: string): ReadonlySet<string> {
  const known = anchors.get(path)
  if (known) return known
  const text = readFileSync(path, 'utf8')
  const found = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id!))
  for (const [, heading] of text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)) {
    const slug = slugOf(heading!)
    let unique = slug
    for (let copy = 1; found.has(unique); copy++) unique = `${slug}-${copy}`
    found.add(unique)
  }
  anchors.set(path, found)
  return found
}

function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}
