import type { FolderFiles } from '../local.ts'
import { plainLine, truncate } from '../terminal/terminal-text.ts'

/**
 * Maximum width of a value, in cells. Longer values are truncated and end with an ellipsis, to show that they are
 * incomplete.
 */
const valueWidthMax = 300

const descriptionOfFile: Readonly<Record<string, string>> = {
  'workbase.yaml': 'configuration',
  '.workbase/': 'data directory',
  '.workbase/workbase.yaml': 'configuration of the data directory',
  '.workbase/.env': 'environment variables',
  '.wb.yaml': 'selects the profile',
}

/** Returns the message for a file that is not used because its folder is not trusted. */
export function untrustedFileMessage(file: string): string {
  return `${file} is not used because its folder is not trusted; run wb trust, or select the file with a flag`
}

/** Returns lines with the files of a folder, and their settings that could send data or run programs. */
export function fileLines(files: FolderFiles): string[] {
  return Object.entries(files).flatMap(([file, values]) => [
    `    ${file}  ${descriptionOfFile[file] ?? ''}`.trimEnd(),
    ...Object.entries(values).map(([key, value]) => `      ${plainLine(key)}  ${formatValue(key, value)}`),
  ])
}

/** Returns lines with the differences between the settings at the time of a decision and the current ones. */
export function diffLines(previous: FolderFiles, current: FolderFiles): string[] {
  return unionOfKeys(previous, current).flatMap(file => {
    const changedKeys = unionOfKeys(previous[file], current[file]).filter(
      key => previous[file]?.[key] !== current[file]?.[key],
    )
    const presence = file in previous ? (file in current ? '' : '  was deleted') : '  is new'
    if (changedKeys.length === 0 && presence === '') return []
    const lines = changedKeys.map(
      key =>
        `      ${plainLine(key)}  ${formatValue(key, previous[file]?.[key])} → ${formatValue(key, current[file]?.[key])}`,
    )
    return [`    ${file}${presence}`, ...lines]
  })
}

function unionOfKeys(a: object = {}, b: object = {}): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
}

function formatValue(key: string, value: string | undefined): string {
  if (value === undefined) return '(not set)'
  if (key === 'store') return value === 'none' ? 'none' : `present (${value})`
  return truncate(plainLine(value), valueWidthMax)
}
