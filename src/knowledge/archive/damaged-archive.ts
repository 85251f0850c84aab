import { WbError } from '../../contract/errors.ts'

/** @param line  position of the line in the request */
export function damagedArchive(line: number, problem: string): WbError {
  return new WbError('archive_damaged', `the file cannot be imported: ${problem}`, { line })
}
