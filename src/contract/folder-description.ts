import { z } from 'zod'
import { limits } from './limits.ts'

/** Returns the path of a folder as it is stored: without `./` at the start and `/` at the end; empty for the whole knowledge base. */
export function normalizeFolderPath(path: string): string {
  const relative = path.replace(/^(?:\.\/+)+/, '')
  const end = relative.search(/\/*$/)
  const trimmed = relative.slice(0, end)
  return trimmed === '.' ? '' : trimmed
}

export const folderPath = z.string().max(limits.folderPathChars).transform(normalizeFolderPath).meta({
  description:
    'start of the file names, such as `guides/setup`, without a slash at the end; empty or `.` for the whole knowledge base',
})

/** Text on one line. White space is shortened. */
export const folderDescription = z
  .string()
  .transform(text => text.replaceAll(/\s+/g, ' ').trim())
  .refine(
    text => text.length >= 1 && text.length <= limits.folderDescriptionChars,
    `must be 1 to ${limits.folderDescriptionChars} characters long`,
  )
  .meta({
    description: 'what the files are, on one line',
    minLength: 1,
    maxLength: limits.folderDescriptionChars,
  })

/** Description of the files below a folder. */
export const FolderDescription = z
  .object({
    path: z.string().meta({ description: 'path of the folder; empty for the whole knowledge base' }),
    description: z.string().meta({ description: 'what the files are' }),
  })
  .meta({ id: 'FolderDescription' })
export type FolderDescription = z.output<typeof FolderDescription>

/** Described folders, as a file that was exported contains them. */
export const ArchivedFolders = z
  .array(z.object({ path: folderPath, description: folderDescription }))
  .max(limits.describedFolders)

/** Returns true if a file is in a folder, or if the path is that of the file. */
export function containsFile(path: string, filename: string | null): boolean {
  if (path === '') return true
  return filename !== null && (filename === path || filename.startsWith(`${path}/`))
}

/**
 * Returns the deepest of the described folders that contain a file.
 *
 * @param filename  `sourceFilename` of the document; null without one
 */
export function folderOf(
  folders: readonly FolderDescription[] = [],
  filename: string | null,
): FolderDescription | undefined {
  return folders
    .filter(({ path }) => containsFile(path, filename))
    .reduce<FolderDescription | undefined>(
      (deepest, folder) => (deepest && deepest.path.length > folder.path.length ? deepest : folder),
      undefined,
    )
}

/**
 * Returns for each item of a list its folder, if no earlier item is in the same folder; otherwise undefined. So a list shows each
 * description once.
 *
 * @param baseOf  returns the ID of the knowledge base; needed for a list of items of several knowledge bases
 */
export function firstOfFolders<T>(
  items: readonly T[],
  folderOfItem: (item: T) => FolderDescription | undefined,
  baseOf: (item: T) => string = () => '',
): (FolderDescription | undefined)[] {
  const shown = new Set<string>()
  return items.map(item => {
    const folder = folderOfItem(item)
    const key = folder && JSON.stringify([baseOf(item), folder.path])
    if (key === undefined || shown.has(key)) return undefined
    shown.add(key)
    return folder
  })
}
