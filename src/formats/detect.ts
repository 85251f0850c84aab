import { extensionOf } from '../base/file-extension.ts'
import { unreadable } from './file-text.ts'
import { encrypted, Zip } from './zip.ts'

/** Formats of files that need more than decoding. */
export type Format =
  | 'pdf'
  | 'docx'
  | 'pptx'
  | 'xlsx'
  | 'xls'
  | 'odt'
  | 'ods'
  | 'epub'
  | 'rtf'
  | 'html'
  | 'email'
  | 'mailbox'
  | 'notebook'
  | 'subtitles'
  | 'text'

const zipStart = Buffer.from('PK\x03\x04')
const oleStart = Buffer.from('d0cf11e0a1b11ae1', 'hex')

/** Extensions whose format cannot be recognized by content alone. */
const byExtension: Readonly<Record<string, Format>> = {
  html: 'html',
  htm: 'html',
  xhtml: 'html',
  eml: 'email',
  mbox: 'mailbox',
  ipynb: 'notebook',
  srt: 'subtitles',
  vtt: 'subtitles',
}

/** Formats by the main file of an archive, and by the media type in an archive. */
const byEntry: readonly [entry: string, format: Format][] = [
  ['word/document.xml', 'docx'],
  ['ppt/presentation.xml', 'pptx'],
  ['xl/workbook.xml', 'xlsx'],
  ['xl/workbook.bin', 'xlsx'],
]
const byMediaType: readonly [prefix: string, format: Format][] = [
  ['application/vnd.oasis.opendocument.text', 'odt'],
  ['application/vnd.oasis.opendocument.presentation', 'odt'],
  ['application/vnd.oasis.opendocument.spreadsheet', 'ods'],
  ['application/epub+zip', 'epub'],
]

/**
 * Recognizes the format of a file by its content, and only if that is a text, by its name. Undefined for an unknown binary
 * format.
 *
 * @throws extraction_failed  the file is encrypted, a damaged archive, or in an old format of Office
 */
export async function detectFormat(bytes: Buffer, name: string): Promise<Format | undefined> {
  const head = bytes.subarray(0, 1_024).toString('latin1')
  if (head.includes('%PDF-')) return 'pdf'
  if (head.startsWith('{\\rtf')) return 'rtf'
  if (bytes.subarray(0, 4).equals(zipStart)) return archiveFormat(bytes)
  if (bytes.subarray(0, 8).equals(oleStart)) return oldOfficeFormat(bytes, extensionOf(name))
  if (
    /^\s*(<!doctype html|<html[\s>])/i.test(
      head.replace(/^(\xef\xbb\xbf|\s|<!--[\s\S]*?-->|<\?xml[^>]*>)+/, ''),
    )
  )
    return 'html'
  if (/^From \S+ .*\d{4}\r?\n/.test(head)) return 'mailbox'
  return byExtension[extensionOf(name)] ?? 'text'
}

async function archiveFormat(bytes: Buffer): Promise<Format | undefined> {
  const zip = await Zip.open(bytes)
  const entry = byEntry.find(([path]) => zip.has(path))
  if (entry) return entry[1]
  const mediaType = zip.has('mimetype') ? (await zip.read('mimetype')).toString('latin1').trim() : ''
  return byMediaType.find(([prefix]) => mediaType.startsWith(prefix))?.[1]
}

/** Returns the format of an OLE container, which old versions of Office and encrypted files use. */
function oldOfficeFormat(bytes: Buffer, extension: string): Format {
  const nameOf = (stream: string) => Buffer.from(stream, 'utf16le')
  if (bytes.includes(nameOf('EncryptedPackage'))) throw encrypted()
  if (bytes.includes(nameOf('Workbook')) || bytes.includes(nameOf('Book'))) return 'xls'
  const newFormats: Readonly<Record<string, string>> = { doc: '.docx', ppt: '.pptx', msg: '.eml' }
  const hint = newFormats[extension]
  throw unreadable(
    'is in an old format of Microsoft Office',
    hint ? `Save it as ${hint}, and send it again.` : 'Save it in a current format, and send it again.',
  )
}
