import { limits } from '../contract/limits.ts'
import { dayOf, type FileText, tidy, titleOf, unreadable } from './file-text.ts'
import { readHtml } from './html.ts'
import { elementsOf, firstElement, parseXml, textOf } from './xml.ts'
import { resolveEntry, Zip } from './zip.ts'

/** Maximum size of all chapters. */
const htmlBytesMax = 2 * limits.ingestTextChars

/** Returns the chapters of an e-book. @throws extraction_failed  the file is damaged, encrypted or too large */
export async function readEpub(bytes: Uint8Array): Promise<FileText> {
  const zip = await Zip.open(bytes)
  const container = parseXml((await zip.read('META-INF/container.xml')).toString('utf8'))
  const path = firstElement(container, 'rootfile')?.attributes['full-path'] ?? ''
  const book = parseXml((await zip.read(path)).toString('utf8'))
  const files = new Map(
    Array.from(elementsOf(book, 'item'), ({ attributes: { id = '', href = '' } }) => [
      id,
      resolveEntry(path, href),
    ]),
  )
  const order = Array.from(elementsOf(book, 'itemref'), ({ attributes }) => files.get(attributes.idref ?? ''))
  const chapters: string[] = []
  let htmlBytes = 0
  for (const file of new Set(order)) {
    if (!file || !zip.has(file)) continue
    const html = await zip.read(file)
    htmlBytes += html.byteLength
    if (htmlBytes > htmlBytesMax) throw unreadable(`has more than ${htmlBytesMax / 1_000_000} MB of text`)
    chapters.push(readHtml(html).text)
  }
  const property = (name: string) => titleOf(textOf(firstElement(book, name)))
  return {
    text: tidy(chapters.join('\n\n')),
    title: property('title'),
    author: property('creator'),
    date: dayOf(property('date')),
  }
}
