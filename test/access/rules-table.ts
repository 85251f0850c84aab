import { readFileSync } from 'node:fs'
import type { Scope } from '../../src/contract/scopes.ts'

/** The columns of the reviewed tables that stand for one kind of caller each. */
export const columns = [
  'disabled',
  'allow',
  'reject',
  'operator',
  'viewer of all',
  'viewer',
  'editor',
  'admin',
  'other workspace',
  'invalid',
] as const

/** Columns of tables that tell apart what others take together, with the column that stands for both there. */
const finer = { bootstrap: 'operator', 'disabled, with a credential': 'disabled' } as const

export type Column = (typeof columns)[number] | keyof typeof finer

const openedBy = 'a key with only'
export const answers = ['yes', '401', '403'] as const
export type Answer = (typeof answers)[number]

/** What the reviewed text says of one route or tool. */
export interface Row {
  /** As it is written: a method and a path, perhaps with a condition; or a tool. */
  readonly line: string
  /** Method and path as the registry spells them; undefined for a tool. */
  readonly route: string | undefined
  /** What stands behind the method and path. */
  readonly condition: string
  readonly answers: Readonly<Record<Column, Answer>>
  /** Sets of scopes, any of which lets a key in that holds nothing else; null lets in every key of the workspace. */
  readonly openedBy: readonly (readonly string[])[] | null
}

const words: Readonly<Record<string, string>> = {
  W: '/api/v1/workspaces/:workspaceId',
  KB: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
}

/** Read every table of a page whose first column is `route` or `tool`. */
export function readRules(page: string): Row[] {
  const rows: Row[] = []
  let head: string[] | undefined
  for (const line of readFileSync(page, 'utf8').split('\n')) {
    const cells = cellsOf(line)
    if (!cells) head = undefined
    else if (!head) head = cells
    else if (isRules(head) && !/^-+$/.test(cells[0]!)) rows.push(rowOf(head, cells))
  }
  return rows
}

function cellsOf(line: string): string[] | undefined {
  if (!line.startsWith('|')) return undefined
  return line
    .slice(1, line.lastIndexOf('|'))
    .split('|')
    .map(cell => cell.trim())
}

function isRules([first]: readonly string[]): boolean {
  return first === 'route' || first === 'tool'
}

function rowOf(head: readonly string[], cells: readonly string[]): Row {
  const [line] = cells as [string]
  const cell = (column: string) => {
    const at = head.indexOf(column)
    if (at < 0 || cells.length !== head.length) throw new Error(`${line}: no cell '${column}'`)
    return cells[at]!
  }
  const answerOf = (column: Column): Answer => {
    const answer = answers.find(one => one === cell(column))
    if (!answer) throw new Error(`${line}: '${cell(column)}' is no answer`)
    return answer
  }
  const [, method, path, condition] = /^`(?:([A-Z]+) )?([^`]+)`(.*)$/.exec(line) ?? []
  return {
    line,
    route: method && `${method} ${fullPath(path!)}`,
    condition: condition?.trim() ?? '',
    answers: Object.fromEntries([
      ...columns.map(column => [column, answerOf(column)] as const),
      ...entriesOf(finer).map(([own, other]) => [own, answerOf(head.includes(own) ? own : other)] as const),
    ]) as Row['answers'],
    openedBy: openers(cell(openedBy)),
  }
}

function entriesOf<T extends object>(object: T): [keyof T, T[keyof T]][] {
  return Object.entries(object) as [keyof T, T[keyof T]][]
}

function fullPath(path: string): string {
  return path.replace(/^[A-Z]+(?=\/|$)/, word => words[word] ?? word).replaceAll(/\{(\w+)\}/g, ':$1')
}

function openers(cell: string): Row['openedBy'] {
  if (cell === 'anything') return null
  if (cell === 'nothing') return []
  return cell.split(',').map(set =>
    set.split(' and ').map(scope => {
      const [, name] = /^`([\w:]+)`$/.exec(scope.trim()) ?? []
      if (!name) throw new Error(`'${scope}' is no scope`)
      return name
    }),
  )
}

/** Returns the expected answer for a key of the workspace with the given scopes. Without access, it is that of another workspace. */
export function answerForScopes(row: Row, held: readonly Scope[]): Answer {
  const isLetIn = row.openedBy?.some(set => set.every(scope => held.some(one => one === scope))) ?? true
  return isLetIn ? 'yes' : row.answers['other workspace']
}
