import { authorize } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import type { Clock } from '../base/clock.ts'
import { needs } from '../contract/access.ts'
import { WbError } from '../contract/errors.ts'
import type { PlaygroundCommand, PlaygroundResult } from '../contract/playground.ts'
import type { Workspace } from '../contract/workspaces.ts'
import { requireCommands } from '../storage/store-features.ts'
import { type ContentStores, requireStore } from './content-stores.ts'
import { parseCommandTarget } from './parse-command-target.ts'

/**
 * Runs one command on the remote database of a workspace.
 *
 * Commands bypass row-level access. If it is enabled, only callers with `manage:access` can run commands.
 *
 * @throws unsupported_workspace_kind  the database of the workspace does not support commands; checked first
 * @throws forbidden                   row-level access is enabled, and the caller lacks `manage:access`
 * @throws invalid_playground_command, workspace_misconfigured, driver_unavailable
 * @throws data_api_error        the database rejected the command
 * @throws data_api_unavailable  the database does not respond
 * @see docs/connecting.md#run-commands-on-a-remote-database
 */
export async function executePlaygroundCommand(
  { stores, clock }: { stores: ContentStores; clock: Clock },
  workspace: Workspace,
  body: PlaygroundCommand,
  caller: Pick<Caller, 'auth' | 'signal'>,
): Promise<PlaygroundResult> {
  const { workspaceId, kind, keyspace } = workspace
  if (kind !== 'astra')
    throw new WbError('unsupported_workspace_kind', `workspaces of kind '${kind}' do not support commands`)
  if (workspace.rlacEnabled) authorize({ rule: needs('manage:access'), workspaceId }, caller)
  const { command } = body
  const { commandName, ...target } = parseCommandTarget(body)
  const commands = requireCommands(requireStore(stores, workspace))
  const startedAt = clock.now()
  const result = await commands.run({ workspaceId, keyspace, target }, command, caller.signal)
  return {
    ok: true,
    commandName,
    targetKind: target.kind,
    targetName: target.name,
    collection: target.kind === 'collection' ? target.name : null,
    table: target.kind === 'table' ? target.name : null,
    keyspace,
    command,
    result,
    elapsedMs: Math.round(clock.now() - startedAt),
  }
}
