import mammoth from 'mammoth'
import { dayOf, type FileText, titleOf, unreadable } from './file-text.ts'
import { convertHtml } from './html.ts'
import { firstElement, parseXml, textOf } from './xml.ts'
import { Zip } from './zip.ts'

const styleMap = ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh"]

/** @throws extraction_failed  the file is damaged, encrypted or too large */
export async function readDocx(bytes: Uint8Array): Promise<FileText> {
  const zip = await openDocx(bytes)
  const options = { styleMap, convertImage: mammoth.images.imgElement(async () => ({ src: '' })) }
  const { value } = await convert(() => mammoth.convertToHtml(inputOf(bytes), options))
  const { text } = convertHtml(value)
  const { title, ...properties } = await propertiesOfOffice(zip)
  return { text, title: title ?? titleOf(/^# (.+)/m.exec(text)?.[1]), ...properties }
}

/** Returns the text without its structure. @throws extraction_failed  the file is damaged, encrypted or too large */
export async function readDocxText(bytes: Uint8Array): Promise<string> {
  await openDocx(bytes)
  return (await convert(() => mammoth.extractRawText(inputOf(bytes)))).value.trim()
}

/** Returns the properties of a file of Microsoft Office. */
export async function propertiesOfOffice(zip: Zip): Promise<Pick<FileText, 'title' | 'author' | 'date'>> {
  if (!zip.has('docProps/core.xml')) return { title: null }
  const properties = parseXml((await zip.read('docProps/core.xml')).toString('utf8'))
  const property = (name: string) => titleOf(textOf(firstElement(properties, name)))
  return { title: property('title'), author: property('creator'), date: dayOf(property('modified')) }
}

/** Opens a Word file. The library would unpack it without a limit. */
async function openDocx(bytes: Uint8Array): Promise<Zip> {
  const zip = await Zip.open(bytes)
  return zip.requireSmall()
}

function inputOf(bytes: Uint8Array): { buffer: Buffer } {
  return { buffer: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) }
}

async function convert<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw unreadable('is a damaged Word file', undefined, error)
  }
}
