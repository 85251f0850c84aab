import { reservedPayloadKeys } from '../contract/fields.ts'
import { isObject } from './is-object.ts'
import { parseYaml } from './read-yaml.ts'

type Property = string | number | boolean

const titleCharsMax = 200
/** Number of characters, from the start of a document, in which to search for properties. */
const searchedChars = 20_000
/** Number of characters at the start of a line in which to search for a title. */
const lineCharsMax = 500
/** Maximum number of fields of front matter. The others are ignored. */
const fieldsMax = 50
/** Maximum length of a value, which is cut. */
const valueCharsMax = 500
const fieldName = /^[\p{L}_][\p{L}\p{N}_.-]{0,63}$/u
/** Metadata that the runtime and the command line write. */
const reservedNames: ReadonlySet<string> = new Set([
  'ingestParser',
  'ingestParserVersion',
  'fileHash',
  'syncFolder',
])

/**
 * Returns the properties of a Markdown text as flat metadata: the fields of its front matter, and its title, which is the first
 * heading if the front matter has none. The values of a list are joined with commas. Omits other values, and fields that only
 * the runtime writes.
 *
 * @see https://spec.commonmark.org/0.31.2/#atx-headings
 */
export function markdownProperties(text: string): Record<string, Property> {
  const lines = text.slice(0, searchedChars).split(/\r?\n/)
  const end = lines[0] === '---' ? lines.indexOf('---', 1) : -1
  const head = lines.slice(1, Math.max(1, end))
  const { title: declared = titleLine(head.map(cutLine)), ...fields } = frontMatter(head.join('\n'))
  const title = declared === undefined ? firstHeading(lines.slice(end + 1).map(cutLine)) : String(declared)
  const plainTitle = title && stripMarkup(cutLine(title)).slice(0, titleCharsMax)
  return { ...fields, ...(plainTitle && { title: plainTitle }) }
}

/** Cuts a line, because the patterns below take quadratic time. */
function cutLine(line: string): string {
  return line.slice(0, lineCharsMax)
}

/** Returns the fields of front matter; none if it is not a map in YAML. */
function frontMatter(yaml: string): Record<string, Property> {
  const fields = parseYaml(yaml)
  if (!isObject(fields)) return {}
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => fieldName.test(name) && !reservedPayloadKeys.has(name) && !reservedNames.has(name))
      .flatMap(([name, value]) => {
        const property = propertyOf(value)
        return property === undefined ? [] : [[name, property] satisfies [string, Property]]
      })
      .slice(0, fieldsMax),
  )
}

function propertyOf(value: unknown): Property | undefined {
  if (typeof value === 'boolean' || Number.isFinite(value)) return value as boolean | number
  if (typeof value === 'string') return value.trim().slice(0, valueCharsMax) || undefined
  if (!Array.isArray(value)) return undefined
  const values = value.map(item => (Array.isArray(item) ? undefined : propertyOf(item)))
  if (values.includes(undefined)) return undefined
  return values.join(', ').slice(0, valueCharsMax) || undefined
}

/** Returns the title of front matter that is not valid YAML, such as `title: Keys: an overview`. */
function titleLine(lines: readonly string[]): string | undefined {
  const line = lines.find(text => /^title:\s*\S/.test(text))
  return line?.replace(/^title:\s*/, '').replace(/^(["'])(.*)\1\s*$/, '$2')
}

function firstHeading(lines: readonly string[]): string | undefined {
  let openFence: string | undefined
  for (const [index, line] of lines.entries()) {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence && (openFence === undefined || fence.startsWith(openFence)))
      openFence = openFence === undefined ? fence : undefined
    if (openFence !== undefined) continue
    const heading = parseHeading(line)
    if (heading) return heading
    if (/^={2,}\s*$/.test(lines[index + 1] ?? '') && line.trim()) return line.trim()
  }
  return undefined
}

/** Returns the text of an ATX heading. */
function parseHeading(line: string): string | undefined {
  return /^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?\s*$/.exec(line)?.[1]
}

/** Removes Markdown from a line: replaces links with their text, and removes emphasis and code marks. */
function stripMarkup(line: string): string {
  return line
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]+>/g, '')
    .replace(/\*\*|__|`/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')
    .trim()
}
