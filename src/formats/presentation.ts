import { propertiesOfOffice } from './docx.ts'
import { type FilePart, type FileText, joinParts, markdownTable, titleOf } from './file-text.ts'
import { elementsOf, firstElement, parseXml, textOf, type XmlElement } from './xml.ts'
import { resolveEntry, Zip } from './zip.ts'

/**
 * Returns the slides of a PowerPoint file: titles as headings, then texts, tables and notes.
 *
 * @throws extraction_failed  the file is damaged, encrypted or too large
 */
export async function readPptx(bytes: Uint8Array): Promise<FileText> {
  const zip = await Zip.open(bytes)
  const slides: FilePart[] = []
  for (const path of await slidePaths(zip)) {
    const slide = parseXml((await zip.read(path)).toString('utf8'))
    const notes = await notesOf(zip, path)
    const number = slides.length + 1
    const blocks = [...slideBlocks(slide, number), ...(notes === '' ? [] : [`Notes: ${notes}`])]
    slides.push({ text: blocks.join('\n\n'), slide: number })
  }
  const { text, places } = joinParts(slides)
  const { title, ...properties } = await propertiesOfOffice(zip)
  return { text, places, title: title ?? titleOf(/^## (.+)/m.exec(text)?.[1]), ...properties }
}

/** Returns the files of the slides in the order of the presentation. A slide that occurs several times is returned once. */
async function slidePaths(zip: Zip): Promise<string[]> {
  const targets = await targetsOf(zip, 'ppt/presentation.xml')
  const presentation = parseXml((await zip.read('ppt/presentation.xml')).toString('utf8'))
  const paths = Array.from(elementsOf(presentation, 'sldId'), slide =>
    targets.get(slide.attributes['r:id'] ?? ''),
  )
  return [...new Set(paths)].filter(path => path !== undefined).filter(path => zip.has(path))
}

/** Returns the paths of the files to which a file refers, by the ID of the reference. */
async function targetsOf(zip: Zip, path: string): Promise<ReadonlyMap<string, string>> {
  const references = path.replace(/([^/]+)$/, '_rels/$1.rels')
  if (!zip.has(references)) return new Map()
  const list = parseXml((await zip.read(references)).toString('utf8'))
  return new Map(
    Array.from(elementsOf(list, 'Relationship'), ({ attributes: { Id = '', Target = '' } }) => [
      Id,
      resolveEntry(path, Target),
    ]),
  )
}

async function notesOf(zip: Zip, slidePath: string): Promise<string> {
  const path = [...(await targetsOf(zip, slidePath)).values()].find(target =>
    /\/notesSlide[^/]*\.xml$/.test(target),
  )
  if (!path || !zip.has(path)) return ''
  const notes = parseXml((await zip.read(path)).toString('utf8'))
  const bodies = [...elementsOf(notes, 'sp')].filter(shape => placeholderOf(shape) === 'body')
  return bodies.flatMap(paragraphsOf).join(' ').trim()
}

function placeholderOf(shape: XmlElement): string | undefined {
  const placeholder = firstElement(firstElement(shape, 'nvPr'), 'ph')
  return placeholder && (placeholder.attributes.type ?? 'body')
}

function slideBlocks(slide: XmlElement, number: number): string[] {
  const shapes = [...elementsOf(slide, 'sp', 'graphicFrame')]
  const titleShape = shapes.find(shape => /^(ctrT|t)itle$/.test(placeholderOf(shape) ?? ''))
  const title = titleShape && titleOf(paragraphsOf(titleShape).join(' '))
  const others = shapes
    .filter(shape => shape !== titleShape && !/^(sldNum|dt|ftr)$/.test(placeholderOf(shape) ?? ''))
    .map(shape => {
      const table = firstElement(shape, 'tbl')
      return table ? tableOf(table) : paragraphsOf(shape).join('\n')
    })
  return [`## ${title ?? `Slide ${number}`}`, ...others.filter(text => text !== '')]
}

/** Returns the paragraphs with text. Those of lists are list items. */
function paragraphsOf(shape: XmlElement): string[] {
  return Array.from(elementsOf(shape, 'p'), paragraph => {
    const text = Array.from(elementsOf(paragraph, 't', 'br'), run => (run.name === 'br' ? ' ' : textOf(run)))
      .join('')
      .trim()
    const level = Number(firstElement(paragraph, 'pPr')?.attributes.lvl ?? 0)
    return text === '' || level === 0 ? text : `${'  '.repeat(Math.min(level, 8))}- ${text}`
  }).filter(text => text !== '')
}

function tableOf(table: XmlElement): string {
  return markdownTable(
    Array.from(elementsOf(table, 'tr'), row =>
      Array.from(elementsOf(row, 'tc'), cell => paragraphsOf(cell).join(' ')),
    ),
  )
}
