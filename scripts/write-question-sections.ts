/**
 * Writes the corpus of the question set `product`: the sections of the pages in docs/.
 *
 *   npx tsx scripts/write-question-sections.ts
 *
 * The corpus is a fixed copy, to keep its judgments and figures valid when a page changes. Run the script only if you
 * also review the judgments.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

interface Section {
  readonly _id: string
  readonly title: string
  readonly text: string
}

const docs = new URL('../docs/', import.meta.url)
const corpus = new URL('../test/fixtures/questions/product/corpus.jsonl', import.meta.url)

/** Pages that are not about using the product, or are lists with hundreds of similar entries. */
const excludedPages = new Set(['api.md', 'architecture.md', 'benchmarks.md', 'errors.md', 'requirements.md'])
/** Section of security.md that starts its lists of tests, rules and routes. */
const endOfSecurity = '## Tests of the guarantees'
/** Sections with fewer words are introductions of their subsections. */
const sectionWordsMin = 20

const sections = readdirSync(docs)
  .filter(name => name.endsWith('.md') && !excludedPages.has(name))
  .sort()
  .flatMap(name => sectionsOf(name.slice(0, -'.md'.length), readFileSync(new URL(name, docs), 'utf8')))
writeFileSync(corpus, sections.map(section => `${JSON.stringify(section)}\n`).join(''))
console.log(`${sections.length} sections`)

/** Splits a page at its headings. The titles of a section are those of its page and of the headings above it. */
function sectionsOf(page: string, markdown: string): Section[] {
  const found: Section[] = []
  let titles: string[] = []
  let lines: string[] = []
  let isCode = false
  const add = () => {
    const text = plainText(lines.join('\n'))
    const anchor = anchorOf(titles.at(-1) ?? '')
    const isLong = text.split(/\s+/).length >= sectionWordsMin
    if (isLong)
      found.push({ _id: titles.length > 1 ? `${page}#${anchor}` : page, title: titles.join(' › '), text })
    lines = []
  }
  for (const line of markdown.split(endOfSecurity)[0]!.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    const heading = isCode ? null : /^(#{1,3}) (.+)$/.exec(line)
    if (!heading) {
      lines.push(line)
      continue
    }
    add()
    titles = [...titles.slice(0, heading[1]!.length - 1), heading[2]!]
  }
  add()
  return found
}

/** Returns Markdown without comments, code fences and the targets of links. */
function plainText(markdown: string): string {
  return markdown
    .replaceAll(/<!--.*?-->\n?/gs, '')
    .replaceAll(/^```.*\n/gm, '')
    .replaceAll(/\[([^\]]*)\]\([^)\s]*\)/g, '$1')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(/\s/g, '-')
}
