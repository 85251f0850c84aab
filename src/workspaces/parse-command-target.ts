import { WbError } from '../contract/errors.ts'
import type { CommandName, PlaygroundCommand, TargetKind } from '../contract/playground.ts'

/**
 * Allowed target of a command: a collection, a table, either of them, or all collections or all tables of the keyspace.
 */
type TargetScope = TargetKind | 'either' | 'collections' | 'tables'

const scopeByCommand: Readonly<Record<CommandName, TargetScope>> = {
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

/** Target of a command. If `name` is null, the target is the keyspace. */
export interface CommandTarget {
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
export function parseCommandTarget(body: PlaygroundCommand): CommandTarget {
  const { commandName, command } = body
  const keys = Object.keys(command)
  if (keys.length !== 1 || keys[0] !== commandName)
    throw invalidCommand(`command: must have one key, '${commandName}'`)
  const { collection = null, table = null } = body
  const scope = scopeByCommand[commandName]
  const kind = targetKind(body, scope)
  if (scope === 'collections' || scope === 'tables') {
    if (collection !== null || table !== null)
      throw invalidCommand(`'${commandName}' does not take a collection or a table`)
    if (`${kind}s` !== scope) throw invalidCommand(`targetKind: '${commandName}' operates on ${scope}`)
    return { commandName, kind, name: null }
  }
  if (scope !== 'either' && scope !== kind) throw invalidCommand(`'${commandName}' operates on a ${scope}`)
  const [name, otherName] = kind === 'table' ? [table, collection] : [collection, table]
  if (otherName !== null)
    throw invalidCommand(`${kind === 'table' ? 'collection' : 'table'}: the target is a ${kind}`)
  if (name === null) throw invalidCommand(`${kind}: is missing`)
  return { commandName, kind, name }
}

function targetKind({ targetKind, table = null }: PlaygroundCommand, scope: TargetScope): TargetKind {
  if (targetKind) return targetKind
  return table !== null || scope === 'table' || scope === 'tables' ? 'table' : 'collection'
}

function invalidCommand(message: string): WbError {
  return new WbError('invalid_playground_command', message)
}
