import type { Client } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { counted } from '../output.ts'
import { countItems } from '../take.ts'

/** What is said when nothing was found: of how many documents, and one thing to try. */
export async function nothingFound(search: {
  client: Client
  base: KnowledgeBase
  flags: { filter?: string; mode?: string }
}): Promise<string> {
  const { client, base, flags } = search
  const params = { workspaceId: base.workspaceId, knowledgeBaseId: base.knowledgeBaseId }
  const held = await countItems(client.items(documents.list, { params, query: { limit: limits.pageMax } }))
  return `  nothing found in ${base.name} (${counted(held, 'document')})\n  ${suggestion(held, base.name, flags)}`
}

function suggestion(
  held: number,
  name: string,
  { filter, mode }: { filter?: string; mode?: string },
): string {
  if (held === 0) return `wb kb ingest ${name} ./my-folder`
  if (filter !== undefined) return 'try it without --filter'
  if (mode === 'lexical') return 'try --mode hybrid, which also finds related words'
  return 'try other words, or fewer of them'
}
