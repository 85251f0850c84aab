import type { Client } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { formatCounted } from '../terminal/output.ts'
import { countItems } from '../terminal/take-first.ts'
import type { WorkspaceScope } from './workspace-scope.ts'

/** Search flags that can exclude results. */
interface NarrowingSearchFlags {
  filter?: string
  where?: string[]
  saved?: string
  mode?: string
}

/** Describes an empty result: the number of documents searched, and one suggestion. */
export async function describeEmptyResult(search: {
  client: Client
  base: KnowledgeBase | WorkspaceScope
  flags: NarrowingSearchFlags
}): Promise<string> {
  const { client, base, flags } = search
  if ('names' in base) return describeEmptyWorkspace(base.names.size, flags)
  const params = { workspaceId: base.workspaceId, knowledgeBaseId: base.knowledgeBaseId }
  const documentCount = await countItems(client.items(documents.list, { params }))
  return `  no results in ${base.name} (${formatCounted(documentCount, 'document')})\n  ${suggestForBase(documentCount, base.name, flags)}`
}

function describeEmptyWorkspace(baseCount: number, flags: NarrowingSearchFlags): string {
  const suggestion = baseCount === 0 ? 'wb kb create handbook' : suggestForFlags(flags)
  return `  no results in ${formatCounted(baseCount, 'knowledge base')}\n  ${suggestion}`
}

function suggestForBase(documentCount: number, name: string, flags: NarrowingSearchFlags): string {
  return documentCount === 0 ? `wb kb ingest ${name} ./my-folder` : suggestForFlags(flags)
}

function suggestForFlags({ filter, where, saved, mode }: NarrowingSearchFlags): string {
  const [flag] = Object.entries({ filter, where, saved }).flatMap(([name, value]) => (value ? [name] : []))
  if (flag) return `try it without --${flag}`
  if (mode === 'lexical') return 'try --mode hybrid, which also finds related words'
  return 'try other words, or fewer of them'
}
