import { dayOf, type FilePart, type FileText, joinParts, markdownTable, titleOf } from './file-text.ts'
import { elementsOf, firstElement, parseXml, textOf, type XmlElement } from './xml.ts'
import { Zip } from './zip.ts'

/** Maximum number of spaces and cells that one element can stand for. */
const repeatedMax = 100

/**
 * Returns the text of a document or presentation in the OpenDocument format, such as that of LibreOffice.
 *
 * @throws extraction_failed  the file is damaged, encrypted or too large
 */
export async function readOpenDocument(bytes: Uint8Array): Promise<FileText> {
  const zip = await Zip.open(bytes)
  const content = parseXml((await zip.read('content.xml')).toString('utf8'))
  const meta = zip.has('meta.xml') ? parseXml((await zip.read('meta.xml')).toString('utf8')) : undefined
  const body = firstElement(content, 'body')
  const slides = body ? [...elementsOf(body, 'page')] : []
  const parts: FilePart[] =
    slides.length > 0
      ? slides.map((slide, at) => ({ text: blockOf(slide).join('\n\n'), slide: at + 1 }))
      : [{ text: body ? blocksOf(body).join('\n\n') : '' }]
  const { text, places } = joinParts(parts)
  const property = (name: string) => titleOf(textOf(firstElement(meta, name)))
  return {
    text,
    ...(slides.length > 0 && { places }),
    title: property('title') ?? titleOf(/^# (.+)/m.exec(text)?.[1]),
    author: property('creator'),
    date: dayOf(property('date')),
  }
}

function blocksOf(element: XmlElement): string[] {
  return element.children.flatMap(child => (typeof child === 'string' ? [] : blockOf(child)))
}

function blockOf(element: XmlElement): string[] {
  const { name, attributes } = element
  switch (name) {
    case 'h':
      return [
        `${'#'.repeat(Math.min(6, Number(attributes['text:outline-level'] ?? 1) || 1))} ${inlineText(element)}`,
      ]
    case 'p':
      return [inlineText(element)]
    case 'list':
      return [listOf(element, 0)]
    case 'table':
      return [tableOf(element)]
    case 'page':
      return [`## ${slideName(attributes['draw:name'])}`, ...blocksOf(element)]
    case 'tracked-changes':
    case 'annotation':
    case 'forms':
    case 'sequence-decls':
      return []
    default:
      return blocksOf(element)
  }
}

/** Returns the name of a slide. LibreOffice names slides `page1` if the author did not choose a name. */
function slideName(name = 'page'): string {
  return name.replace(/^page(?=\d*$)/, 'Slide ').trimEnd()
}

function listOf(list: XmlElement, depth: number): string {
  const lines = Array.from(elementsOf(list, 'list-item', 'list-header'), item => {
    const texts = item.children.flatMap(child =>
      typeof child !== 'string' && (child.name === 'p' || child.name === 'h') ? [inlineText(child)] : [],
    )
    const nested = item.children.flatMap(child =>
      typeof child !== 'string' && child.name === 'list' ? [listOf(child, depth + 1)] : [],
    )
    return [`${'  '.repeat(depth)}- ${texts.join(' ')}`, ...nested].join('\n')
  })
  return lines.join('\n')
}

function tableOf(table: XmlElement): string {
  return markdownTable(
    Array.from(elementsOf(table, 'table-row'), row =>
      Array.from(elementsOf(row, 'table-cell', 'covered-table-cell')).flatMap(cell => {
        const repeated = Math.min(
          repeatedMax,
          Number(cell.attributes['table:number-columns-repeated'] ?? 1) || 1,
        )
        return Array<string>(repeated).fill(Array.from(elementsOf(cell, 'p', 'h'), inlineText).join(' '))
      }),
    ),
  )
}

/** Returns the text of a paragraph. Spaces, tabs and line breaks are elements. */
function inlineText(element: XmlElement): string {
  return element.children
    .map(child => {
      if (typeof child === 'string') return child
      if (child.name === 's')
        return ' '.repeat(Math.min(repeatedMax, Number(child.attributes['text:c'] ?? 1) || 1))
      if (child.name === 'tab') return ' '
      if (child.name === 'line-break') return '\n'
      return child.name === 'annotation' ? '' : inlineText(child)
    })
    .join('')
}
