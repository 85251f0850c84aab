import { basename } from 'node:path'
import { readEntries } from '../test/harness/beir.ts'
import { call, type Server } from './server.ts'

/** Number of sections of a page, for collections whose sections do not belong to pages. */
const sectionsPerPage = 12
/** Share of a section, or of a chunk, that both must have in common. */
const commonShare = 0.5

interface Section {
  readonly id: string
  readonly start: number
  readonly end: number
}

interface Page {
  readonly text: string
  readonly sections: Section[]
}

/**
 * Ingests the sections of a collection as Markdown pages with headings.
 *
 * @returns the sections of a chunk, by document ID and text of the chunk
 */
export async function ingestPages(
  server: Server,
  base: string,
  folder: string,
): Promise<(documentId: string, chunk: string) => string[]> {
  const pages = new Map<string, Page>()
  const groups = new Map<string, { id: string; title: string; text: string }[]>()
  for (const [at, { _id, title, text }] of readEntries(folder, 'corpus.jsonl').entries()) {
    const [name] =
      basename(folder) === 'product' ? _id.split('#') : [`page-${Math.floor(at / sectionsPerPage)}`]
    groups.set(name!, [...(groups.get(name!) ?? []), { id: _id, title, text }])
  }
  for (const [name, group] of groups) {
    const pageTitle = group[0]!.title.split(' › ')[0]!
    let text = basename(folder) === 'product' ? `# ${pageTitle}\n\n` : ''
    const sections: Section[] = []
    for (const section of group) {
      const heading = basename(folder) === 'product' ? section.title.split(' › ')[1] : section.title
      const start = text.length
      text += heading === undefined ? `${section.text}\n\n` : `## ${heading}\n\n${section.text}\n\n`
      sections.push({ id: section.id, start, end: text.length })
    }
    const { document } = await call<{ document: { documentId: string } }>(server, 'POST', `${base}/ingest`, {
      text,
      sourceFilename: `${name}.md`,
    })
    pages.set(document.documentId, { text, sections })
  }
  return (documentId, chunk) => {
    const { text, sections } = pages.get(documentId)!
    const start = text.indexOf(chunk)
    const end = start + chunk.length
    return sections.flatMap(section => {
      const common = Math.min(end, section.end) - Math.max(start, section.start)
      const least = commonShare * Math.min(chunk.length, section.end - section.start)
      return common >= least ? [section.id] : []
    })
  }
}
