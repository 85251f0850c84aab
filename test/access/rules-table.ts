import { readFileSync } from 'node:fs'
import type { Scope } from '../../src/contract/scopes.ts'

/** Columns of the reviewed tables, each for one kind of caller. */
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

/** Columns that only some tables have, with the column that replaces them in other tables. */
const fallbackColumns = { bootstrap: 'operator', 'disabled, with a credential': 'disabled' } as const

export type Column = (typeof columns)[number] | keyof typeof fallbackColumns

const openedBy = 'a key with only'
export const answers = ['yes', '401', '403'] as const
export type Answer = (typeof answers)[number]

/** A row of the reviewed tables: the access to a route or tool. */
export interface RuleRow {
  /** First cell of the row: a method and a path, perhaps with a condition, or a tool. */
  readonly line: string
  /** Method and path as in the registry; undefined for a tool. */
  readonly route: string | undefined
  /** Text after the method and path, which limits the row to some requests. */
  readonly condition: string
  readonly answers: Readonly<Record<Column, Answer>>
  /** Sets of scopes, each sufficient for access; null if every key of the workspace has access. */
  readonly openedBy: readonly (readonly string[])[] | null
}

const pathPrefixes: Readonly<Record<string, string>> = {
  W: '/api/v1/workspaces/:workspaceId',
  KB: '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId',
}

/** Returns the rows of every table of a page whose first column is `route` or `tool`. */
export function readRules(page: string): RuleRow[] {
  const rows: RuleRow[] = []
  let head: string[] | undefined
  for (const line of readFileSync(page, 'utf8').split('\n')) {
    const cells = parseCells(line)
    if (!cells) head = undefined
    else if (!head) head = cells
    else if (isRulesTable(head) && !/^-+$/.test(cells[0]!)) rows.push(parseRow(head, cells))
  }
  return rows
}

function parseCells(line: string): string[] | undefined {
  if (!line.startsWith('|')) return undefined
  return line
    .slice(1, line.lastIndexOf('|'))
    .split('|')
    .map(cell => cell.trim())
}

function isRulesTable([first]: readonly string[]): boolean {
  return first === 'route' || first === 'tool'
}

function parseRow(head: readonly string[], cells: readonly string[]): RuleRow {
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
      ...entriesOf(fallbackColumns).map(
        ([own, other]) => [own, answerOf(head.includes(own) ? own : other)] as const,
      ),
    ]) as RuleRow['answers'],
    openedBy: parseOpenedBy(cell(openedBy)),
  }
}

function entriesOf<T extends object>(object: T): [keyof T, T[keyof T]][] {
  return Object.entries(object) as [keyof T, T[keyof T]][]
}

function fullPath(path: string): string {
  return path.replace(/^[A-Z]+(?=\/|$)/, word => pathPrefixes[word] ?? word).replaceAll(/\{(\w+)\}/g, ':$1')
}

function parseOpenedBy(cell: string): RuleRow['openedBy'] {
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

/**
 * Returns the expected answer for a key of the workspace with the given scopes. A key without access gets the
 * answer for keys of other workspaces.
 */
export function answerForScopes(row: RuleRow, held: readonly Scope[]): Answer {
  const isLetIn = row.openedBy?.some(set => set.every(scope => held.some(one => one === scope))) ?? true
  return isLetIn ? 'yes' : row.answers['other workspace']
}
