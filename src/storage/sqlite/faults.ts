import type { Ops } from '../../base/threads.ts'
import { WbError } from '../../contract/errors.ts'
import { damaged, damageHint } from '../damage.ts'
import { diskFull, isDiskFull } from '../disk-space.ts'
import Database from './driver.ts'

/** What the schema or a trigger refuses: the fault of one unit, and of no other. */
const refusals = ['SQLITE_CONSTRAINT', 'SQLITE_ABORT'] as const

/** Messages of SQLite about damaged rows or a damaged schema. Their code is the one of wrong SQL, too. */
const damageInSql = new RegExp(
  [
    'malformed JSON',
    'no such (?:table|index|column|fts5 table|tokenizer): ',
    'vtable constructor failed: ',
    'invalid fts5 file format',
    'fts5: missing row',
    'unrecognized (?:column )?option: ',
  ]
    .map(beginning => `^${beginning}`)
    .join('|'),
)

const permissionsHint = 'Check the permissions of the data directory.'

/** What a person is told, by the leading part of SQLite's result code. The driver's own text stays in `cause`. */
const faults: readonly (readonly [prefix: string, fact: string, hint?: string])[] = [
  [
    'SQLITE_BUSY',
    'the store is busy: another process kept it locked',
    'Retry in a moment, or end the process that holds the data directory.',
  ],
  ['SQLITE_LOCKED', 'the store is busy: another task kept it locked', 'Retry in a moment.'],
  ['SQLITE_CORRUPT', 'the store is damaged', damageHint],
  [
    'SQLITE_NOTADB',
    'the store is not a database of this runtime',
    'Restore a copy, or use another data directory.',
  ],
  ['SQLITE_READONLY', 'the store cannot be written', permissionsHint],
  ['SQLITE_CANTOPEN', 'the store cannot be opened', permissionsHint],
  ['SQLITE_PERM', 'the store cannot be opened', permissionsHint],
  ['SQLITE_IOERR', 'the store cannot be read or written', 'Check the disk of the data directory.'],
  ...refusals.map(code => [code, 'the store refuses this change'] as const),
]

/** The storage failure behind an error of the driver; undefined for a defect, such as wrong SQL. */
function faultOf(error: unknown): WbError | undefined {
  if (!(error instanceof Database.SqliteError)) return undefined
  if (error.code === 'SQLITE_ERROR' && damageInSql.test(error.message)) return damaged('part of it', error)
  if (isDiskFull(error)) return diskFull(error, { sqlite: error.code })
  const fault = faults.find(([prefix]) => error.code.startsWith(prefix))
  if (!fault) return undefined
  const [, fact, hint] = fault
  return new WbError('control_plane_unavailable', fact, { hint, sqlite: error.code }, { cause: error })
}

/** Whether a failure is of the store and all that waits for it, not of the unit that met it. */
export function isOfStore(error: unknown): boolean {
  const code = faultOf(error)?.facts.sqlite
  return typeof code === 'string' && !refusals.some(refusal => code.startsWith(refusal))
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

/** Errors of a folder that cannot be created, or in which no file can be created or changed. */
export function unwritable(cause: unknown): WbError {
  if (isDiskFull(cause)) return diskFull(cause)
  const { syscall, path, code } = cause as Partial<NodeJS.ErrnoException>
  if (syscall === 'mkdir')
    return new WbError(
      'control_plane_unavailable',
      `the folder ${path} cannot be created (${code})`,
      { hint: 'Check the folder above it, or name another data directory with --data-dir.' },
      { cause },
    )
  return new WbError(
    'control_plane_unavailable',
    'the data directory cannot be written',
    { hint: 'Check its permissions, or name another with --data-dir.' },
    { cause },
  )
}
