import { read, utils, type WorkBook } from '@e965/xlsx'
import { dayOf, type FileText, joinParts, markdownTable, titleOf, unreadable } from './file-text.ts'
import { encrypted, Zip } from './zip.ts'

/** Maximum number of cells of a sheet that are read, also if it declares more. */
const cellsMax = 5_000_000
const firstDay = '1899-12-31'

/**
 * Returns each sheet as a heading and a table. The first row with text has the column headers.
 *
 * @param isArchive  true for formats that are ZIP archives
 * @throws extraction_failed  the file is damaged, encrypted or too large
 */
export async function readSpreadsheet(bytes: Uint8Array, isArchive: boolean): Promise<FileText> {
  if (isArchive) await (await Zip.open(bytes)).requireSmall()
  const workbook = parse(bytes)
  const sheets = workbook.SheetNames.map(name => {
    const table = markdownTable(rowsOf(workbook, name))
    return { text: table === '' ? '' : `## ${name}\n\n${table}`, sheet: name }
  })
  const { Title, Author, ModifiedDate } = workbook.Props ?? {}
  const date = ModifiedDate instanceof Date ? dayOf(timestampOf(ModifiedDate)) : null
  return { ...joinParts(sheets), title: titleOf(Title), author: titleOf(Author), date }
}

function parse(bytes: Uint8Array): WorkBook {
  try {
    return read(bytes, {
      type: 'buffer',
      cellDates: true,
      UTC: true,
      cellFormula: false,
      cellHTML: false,
      cellStyles: false,
    })
  } catch (error) {
    if (error instanceof Error && /password|encrypt/i.test(error.message)) throw encrypted()
    throw unreadable('is a damaged spreadsheet', undefined, error)
  }
}

function rowsOf(workbook: WorkBook, name: string): string[][] {
  const sheet = workbook.Sheets[name]
  if (!sheet?.['!ref']) return []
  const { s: start, e: end } = utils.decode_range(sheet['!ref'])
  if ((end.r - start.r + 1) * (end.c - start.c + 1) > cellsMax)
    throw unreadable(
      `has a sheet of more than ${cellsMax} cells`,
      'Delete empty rows and columns, or split the file.',
    )
  const rows = utils.sheet_to_json<unknown[]>(sheet, { header: 1, raw: true, defval: '', blankrows: false })
  return rows.map(row => row.map(textOfCell))
}

function textOfCell(value: unknown): string {
  if (!(value instanceof Date)) return String(value)
  const [, date, time] = /^(.*)T(.*?)(?:\.000)?Z$/.exec(timestampOf(value)) ?? []
  if (date === undefined) return ''
  // A time of day is stored as a fraction of the first day.
  if (date === firstDay) return time!
  return time === '00:00:00' ? date : `${date} ${time}`
}

/** Returns an ISO timestamp; empty for an invalid date. */
function timestampOf(date: Date): string {
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}
