import { z } from 'zod'
import { needs } from './access.ts'
import { boundedText } from './fields.ts'
import { storeErrors } from './knowledge.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

const targetKinds = ['collection', 'table'] as const
export type TargetKind = (typeof targetKinds)[number]

const commandNames = [
  'findCollections',
  'createCollection',
  'deleteCollection',
  'listTables',
  'createTable',
  'dropTable',
  'createIndex',
  'createTextIndex',
  'createVectorIndex',
  'listIndexes',
  'dropIndex',
  'countDocuments',
  'updateMany',
  'find',
  'findOne',
  'distinct',
  'insertOne',
  'insertMany',
  'updateOne',
  'deleteOne',
  'deleteMany',
] as const
export type CommandName = (typeof commandNames)[number]

const target = boundedText(limits.playgroundNameChars).nullable().optional()
const json = z
  .custom<Record<string, unknown>>(
    value => typeof value === 'object' && value !== null && !Array.isArray(value),
    { error: 'must be an object' },
  )
  .meta({ type: 'object', additionalProperties: true })

function parseCommandName(name: string, context: z.RefinementCtx): CommandName {
  const commandName = commandNames.find(each => each === name)
  if (commandName) return commandName
  const message = `must be one of ${commandNames.join(', ')}`
  context.addIssue({ code: 'custom', message, params: { code: 'invalid_playground_command' } })
  return z.NEVER
}

const PlaygroundCommand = z.object({
  commandName: boundedText(limits.playgroundNameChars)
    .transform(parseCommandName)
    .meta({ type: 'string', enum: [...commandNames] }),
  targetKind: z.enum(targetKinds).optional(),
  collection: target,
  table: target,
  command: json.meta({ description: 'object whose only key is the name of the command' }),
})
export type PlaygroundCommand = z.output<typeof PlaygroundCommand>

const PlaygroundResult = z
  .object({
    ok: z.literal(true),
    commandName: z.enum(commandNames),
    targetKind: z.enum(targetKinds),
    targetName: z.string().nullable(),
    collection: z.string().nullable(),
    table: z.string().nullable(),
    keyspace: z.string().nullable(),
    command: json,
    result: json,
    elapsedMs: z.int(),
  })
  .meta({ id: 'PlaygroundResult' })
export type PlaygroundResult = z.output<typeof PlaygroundResult>

export const playground = {
  execute: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/playground/execute',
    summary: 'Run one command of the Data API on the database of a workspace',
    description:
      'Runs a command of the Data API. Commands bypass row-level access, so if row-level access is enabled, they also require the scope `manage:access`.',
    access: needs('write'),
    body: { kind: 'json', schema: PlaygroundCommand, mode: 'lenient', limitBytes: limits.jsonBodyBytes },
    replies: { 200: PlaygroundResult },
    errors: [
      'workspace_not_found',
      'unsupported_workspace_kind',
      'invalid_playground_command',
      ...storeErrors,
    ],
  }),
}
