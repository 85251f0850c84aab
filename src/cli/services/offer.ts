import type { Client } from '../../client/client.ts'
import { isNotMine, release, releaseLine, type Use } from './release.ts'

/** Who is asked, and told. */
interface Offering {
  readonly client: Client
  agree(question: string): Promise<boolean>
  note(line: string): void
}

/** In a terminal the release of a secret is offered; elsewhere, and where it is for somebody else, its line is told. */
export async function offerRelease(
  { client, agree, note }: Offering,
  use: Use,
  workspaceId: string,
): Promise<void> {
  if (!(await agree(`Let this workspace send ${use.ref} to ${use.host}?`)))
    return note(`  ${releaseLine(use)}\n    lets it use that secret, if it may not yet`)
  try {
    await release(client, use, workspaceId)
    note(`  ✓ released ${use.ref} for ${use.host}`)
  } catch (error) {
    if (!isNotMine(error)) throw error
    note(`  who owns the data directory does that:\n  ${releaseLine(use)} --as-operator`)
  }
}
