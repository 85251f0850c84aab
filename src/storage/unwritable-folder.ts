import { WbError } from '../contract/errors.ts'
import { diskFull, isDiskFull } from './disk-space.ts'

/** Creates the error for a folder that cannot be created, or whose files cannot be created or changed. */
export function unwritableFolder(cause: unknown): WbError {
  if (isDiskFull(cause)) return diskFull(cause)
  const { syscall, path, code } = cause as Partial<NodeJS.ErrnoException>
  if (syscall === 'mkdir')
    return new WbError(
      'control_plane_unavailable',
      `the folder ${path} cannot be created (${code})`,
      { hint: 'Check the parent folder, or select another data directory with --data-dir.' },
      { cause },
    )
  return new WbError(
    'control_plane_unavailable',
    'the data directory cannot be written',
    { hint: 'Check its permissions, or select another data directory with --data-dir.' },
    { cause },
  )
}
