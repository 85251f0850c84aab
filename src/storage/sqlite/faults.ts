import type { ThreadOperations } from '../../base/threads.ts'
import { WbError } from '../../contract/errors.ts'
import { damagedStore, damageHint } from '../damaged-store.ts'
import { diskFull, isDiskFull } from '../disk-space.ts'
import Database from './driver.ts'

/** Result codes of writes that the schema or a trigger rejects. Such an error affects only one write task. */
const rejections = ['SQLITE_CONSTRAINT', 'SQLITE_ABORT'] as const

/**
 * SQLite messages about damaged rows or a damaged schema. Their code is the same as that of messages about invalid SQL.
 */
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

/**
 * Messages for users, by prefix of SQLite's result code. The `cause` contains the driver's message.
 */
const faults: readonly (readonly [prefix: string, fact: string, hint?: string])[] = [
  [
    'SQLITE_BUSY',
    'the store is busy: another process kept it locked',
    'Retry in a moment, or stop the process that uses the data directory.',
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
  ...rejections.map(code => [code, 'the store rejected this change'] as const),
]

/** Returns the storage error for a driver error; undefined if the error is a defect, such as invalid SQL. */
function toStoreFault(error: unknown): WbError | undefined {
  if (!(error instanceof Database.SqliteError)) return undefined
  if (error.code === 'SQLITE_ERROR' && damageInSql.test(error.message))
    return damagedStore('part of it', error)
  if (isDiskFull(error)) return diskFull(error, { sqlite: error.code })
  const fault = faults.find(([prefix]) => error.code.startsWith(prefix))
  if (!fault) return undefined
  const [, fact, hint] = fault
  return new WbError('control_plane_unavailable', fact, { hint, sqlite: error.code }, { cause: error })
}

/** Returns true if an error affects the whole store and all waiting tasks, not only the task that caused it. */
export function affectsWholeStore(error: unknown): boolean {
  const code = toStoreFault(error)?.facts.sqlite
  return typeof code === 'string' && !rejections.some(rejection => code.startsWith(rejection))
}

/** Returns `control_plane_unavailable` for a storage failure, and any other error unchanged. */
export function convertStoreError(error: unknown): unknown {
  return toStoreFault(error) ?? error
}

/** Runs a function, and converts its errors with `convertStoreError`. */
export async function withStoreErrors<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw convertStoreError(error)
  }
}

/** Wraps each operation in `withStoreErrors`. */
export function withStoreErrorsEach<O extends ThreadOperations>(ops: O): O {
  const entries = Object.entries(ops).map(([name, op]) => [
    name,
    (input: unknown) => withStoreErrors(() => op(input)),
  ])
  return Object.fromEntries(entries) as O
}
