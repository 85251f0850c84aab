import type { Client } from '../../client/client.ts'
import { needsOtherUser, releaseCommand, releaseSecret, type SecretUse } from './release-secret.ts'

/** Callbacks that prompt and inform the user. */
interface ReleasePrompts {
  readonly client: Client
  confirm(question: string): Promise<boolean>
  note(line: string): void
}

/**
 * Offers to release a secret in a terminal. Otherwise, or if the user lacks the permission, prints the
 * command.
 */
export async function offerRelease(
  { client, confirm, note }: ReleasePrompts,
  use: SecretUse,
  workspaceId: string,
): Promise<void> {
  if (!(await confirm(`Let this workspace send ${use.ref} to ${use.host}?`)))
    return note(`  ${releaseCommand(use)}\n    allows it, unless it is already allowed`)
  try {
    await releaseSecret(client, use, workspaceId)
    note(`  ✓ released ${use.ref} for ${use.host}`)
  } catch (error) {
    if (!needsOtherUser(error)) throw error
    note(`  only the owner of the data directory can do that:\n  ${releaseCommand(use)} --as-operator`)
  }
}
