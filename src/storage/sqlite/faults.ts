import Database from 'better-sqlite3'
import type { Ops } from '../../base/threads.ts'
import { WbError } from '../../contract/errors.ts'

/** What the schema or a trigger refuses: the fault of one unit, and of no other. */
const refusals = ['SQLITE_CONSTRAINT', 'SQLITE_ABORT'] as const

/** What a person is told, by the leading part of SQLite's result code. The driver's own text stays in `cause`. */
const faults: readonly (readonly [prefix: string, fact: string, hint?: string])[] = [
  [
    'SQLITE_FULL',
    'the store cannot grow: the disk is full',
    'Free some space on the disk of the data directory.',
  ],
  [
    'SQLITE_BUSY',
    'the store is busy: another process kept it locked',
    'Retry in a moment, or end the process that holds the data directory.',
  ],
  ['SQLITE_LOCKED', 'the store is busy: another task kept it locked', 'Retry in a moment.'],
  ['SQLITE_CORRUPT', 'the store is damaged', 'Restore a copy of the data directory.'],
  [
    'SQLITE_NOTADB',
    'the store is not a database of this runtime',
    'Restore a copy, or use another data directory.',
  ],
  ['SQLITE_READONLY', 'the store cannot be written', 'Check the permissions of the data directory.'],
  ['SQLITE_CANTOPEN', 'the store cannot be opened', 'Check the permissions of the data directory.'],
  ['SQLITE_PERM', 'the store cannot be opened', 'Check the permissions of the data directory.'],
  ['SQLITE_IOERR', 'the store cannot be read or written', 'Check the disk of the data directory.'],
  ...refusals.map(code => [code, 'the store refuses this change'] as const),
]

/** The storage failure behind an error of the driver; undefined for a defect, such as wrong SQL. */
function faultOf(error: unknown): WbError | undefined {
  if (!(error instanceof Database.SqliteError)) return undefined
  const fault = faults.find(([prefix]) => error.code.startsWith(prefix))
  if (!fault) return undefined
  const [, fact, hint] = fault
  return new WbError('control_plane_unavailable', fact, { hint, sqlite: error.code }, { cause: error })
}

/** Whether a failure is of the store and all that waits for it, not of the unit that met it. */
export function isOfStore(error: unknown): boolean {
  const fault = faultOf(error)
  return fault !== undefined && !refusals.some(code => String(fault.facts.sqlite).startsWith(code))
}

/** What a failure of storage work leaves as: those of the store become `control_plane_unavailable`. */
export function asFault(error: unknown): unknown {
  return faultOf(error) ?? error
}

/** Run a piece of storage work; see `asFault`. */
export async function guard<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw asFault(error)
  }
}

/** The same operations, each under `guard`. */
export function guarded<O extends Ops>(ops: O): O {
  const entries = Object.entries(ops).map(([name, op]) => [name, (input: unknown) => guard(() => op(input))])
  return Object.fromEntries(entries) as O
}

/** The folder of a store takes no file, or no change of one. */
export function unwritable(cause: unknown): WbError {
  return new WbError(
    'control_plane_unavailable',
    'the data directory cannot be written',
    { hint: 'Check its permissions, or name another with --data-dir.' },
    { cause },
  )
}
