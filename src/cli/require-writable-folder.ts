import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { shellWord } from '../base/shell-word.ts'
import { errorCodeOf } from './error-code-of.ts'
import { UsageError } from './errors.ts'

/** @throws UsageError  when the folder of the path is missing, or this user cannot write to it */
export function requireWritableFolder(path: string): void {
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT')
      throw new UsageError(`the folder ${folder} does not exist`, [`mkdir -p ${shellWord(folder)}`])
    throw new UsageError(`"${path}" cannot be written (${errorCodeOf(error)})`)
  }
}
