import type { Client } from '../../client/client.ts'
import { isPermissionError, releaseCommand, releaseSecret, type SecretUse } from './release-secret.ts'

/** Callbacks that prompt and inform the user. */
interface ReleasePrompts {
  readonly client: Client
  confirm(question: string): Promise<boolean>
  note(line: string): void
}

/**
 * Asks the user whether to release a secret. Prints the command instead if the user declines, cannot be asked, or does
 * not have the permission.
 */
export async function offerRelease(
  { client, confirm, note }: ReleasePrompts,
  use: SecretUse,
  workspaceId: string,
): Promise<void> {
  if (!(await confirm(`Let this workspace send ${use.ref} to ${use.host}?`)))
    return note(`  ${releaseCommand(use)}\n    allows this, unless it is already allowed`)
  try {
    await releaseSecret(client, use, workspaceId)
    note(`  ✓ released ${use.ref} for ${use.host}`)
  } catch (error) {
    if (!isPermissionError(error)) throw error
    note(`  only the owner of the data directory can release it:\n  ${releaseCommand(use)} --as-operator`)
  }
}
