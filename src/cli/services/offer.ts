import type { Client } from '../../client/client.ts'
import { isNotMine, release, releaseLine, type Use } from './release.ts'

/** Callbacks that prompt and inform the user. */
interface Offering {
  readonly client: Client
  agree(question: string): Promise<boolean>
  note(line: string): void
}

/**
 * Offers to release a secret in a terminal. Otherwise, or if the user lacks the permission, prints the
 * command.
 */
export async function offerRelease(
  { client, agree, note }: Offering,
  use: Use,
  workspaceId: string,
): Promise<void> {
  if (!(await agree(`Let this workspace send ${use.ref} to ${use.host}?`)))
    return note(`  ${releaseLine(use)}\n    allows it, unless it is already allowed`)
  try {
    await release(client, use, workspaceId)
    note(`  ✓ released ${use.ref} for ${use.host}`)
  } catch (error) {
    if (!isNotMine(error)) throw error
    note(`  only the owner of the data directory can do that:\n  ${releaseLine(use)} --as-operator`)
  }
}
