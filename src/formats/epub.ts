import { dayOf, type FileText, tidy, titleOf } from './file-text.ts'
import { readHtml } from './html.ts'
import { elementsOf, firstElement, parseXml, textOf } from './xml.ts'
import { resolveEntry, Zip } from './zip.ts'

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
  const chapters: string[] = []
  for (const { attributes } of elementsOf(book, 'itemref')) {
    const file = files.get(attributes.idref ?? '')
    if (file && zip.has(file)) chapters.push(readHtml(await zip.read(file)).text)
  }
  const property = (name: string) => titleOf(textOf(firstElement(book, name)))
  return {
    text: tidy(chapters.join('\n\n')),
    title: property('title'),
    author: property('creator'),
    date: dayOf(property('date')),
  }
}
