import { WbError } from '../contract/errors.ts'
import type { CommandName, PlaygroundCommand, TargetKind } from '../contract/playground.ts'

/**
 * Target of a command: a collection, a table, either of them, or all collections or tables of the keyspace.
 */
type Scope = TargetKind | 'either' | 'collections' | 'tables'

const scopeOf: Readonly<Record<CommandName, Scope>> = {
  findCollections: 'collections',
  createCollection: 'collections',
  deleteCollection: 'collections',
  listTables: 'tables',
  createTable: 'tables',
  dropTable: 'tables',
  createIndex: 'table',
  createTextIndex: 'table',
  createVectorIndex: 'table',
  listIndexes: 'table',
  dropIndex: 'table',
  countDocuments: 'collection',
  updateMany: 'collection',
  find: 'either',
  findOne: 'either',
  distinct: 'either',
  insertOne: 'either',
  insertMany: 'either',
  updateOne: 'either',
  deleteOne: 'either',
  deleteMany: 'either',
}

/** Target of a command; the keyspace if `name` is null. */
export interface Target {
  readonly commandName: CommandName
  readonly kind: TargetKind
  readonly name: string | null
}

/**
 * Validates a command, and returns its target.
 *
 * @throws invalid_playground_command  the command does not match its name, or its target is invalid
 * @see docs/connecting.md#run-commands-on-a-remote-database
 */
export function targetOf(body: PlaygroundCommand): Target {
  const { commandName, command } = body
  const keys = Object.keys(command)
  if (keys.length !== 1 || keys[0] !== commandName)
    throw invalid(`command: must have one key, '${commandName}'`)
  const { collection = null, table = null } = body
  const scope = scopeOf[commandName]
  const kind = kindOf(body, scope)
  if (scope === 'collections' || scope === 'tables') {
    if (collection !== null || table !== null)
      throw invalid(`'${commandName}' takes no collection and no table`)
    if (`${kind}s` !== scope) throw invalid(`targetKind: '${commandName}' is about ${scope}`)
    return { commandName, kind, name: null }
  }
  if (scope !== 'either' && scope !== kind) throw invalid(`'${commandName}' is run on a ${scope}`)
  const [name, other] = kind === 'table' ? [table, collection] : [collection, table]
  if (other !== null) throw invalid(`${kind === 'table' ? 'collection' : 'table'}: the target is a ${kind}`)
  if (name === null) throw invalid(`${kind}: is missing`)
  return { commandName, kind, name }
}

function kindOf({ targetKind, table = null }: PlaygroundCommand, scope: Scope): TargetKind {
  if (targetKind) return targetKind
  return table !== null || scope === 'table' || scope === 'tables' ? 'table' : 'collection'
}

function invalid(fact: string): WbError {
  return new WbError('invalid_playground_command', fact)
}
