import type { FolderFiles } from '../local.ts'
import { plainLine, truncate } from '../terminal/terminal-text.ts'

/** Cells of a value; what is cut says so, as the end of an address decides where it leads. */
const valueWidthMax = 300

const acts: Readonly<Record<string, string>> = {
  'workbase.yaml': 'configuration',
  '.workbase/': 'data directory',
  '.workbase/workbase.yaml': 'configuration of that data directory',
  '.workbase/.env': 'environment variables',
  '.wb.yaml': 'selects the profile',
}

/** Why a file of a folder was left aside. */
export function untrustedFileMessage(file: string): string {
  return `${file} is not used because its folder is not trusted; run wb trust, or name it`
}

/** Every file that would count, and what it says that could send or run something. */
export function fileLines(files: FolderFiles): string[] {
  return Object.entries(files).flatMap(([file, values]) => [
    `    ${file}  ${acts[file] ?? ''}`.trimEnd(),
    ...Object.entries(values).map(([key, value]) => `      ${plainLine(key)}  ${shownValue(key, value)}`),
  ])
}

/** What files say now that they did not say then, and the other way round. */
export function diffLines(before: FolderFiles, now: FolderFiles): string[] {
  return union(before, now).flatMap(file => {
    const changed = union(before[file], now[file]).filter(key => before[file]?.[key] !== now[file]?.[key])
    const presence = file in before ? (file in now ? '' : '  is gone') : '  is new'
    if (changed.length === 0 && presence === '') return []
    const lines = changed.map(
      key =>
        `      ${plainLine(key)}  ${shownValue(key, before[file]?.[key])} → ${shownValue(key, now[file]?.[key])}`,
    )
    return [`    ${file}${presence}`, ...lines]
  })
}

function union(a: object = {}, b: object = {}): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
}

function shownValue(key: string, value: string | undefined): string {
  if (value === undefined) return '(nothing)'
  if (key === 'store') return value === 'none' ? 'none yet' : `its own (${value})`
  return truncate(plainLine(value), valueWidthMax)
}
