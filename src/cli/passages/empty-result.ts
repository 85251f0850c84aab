import type { Client } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { formatCounted } from '../terminal/output.ts'
import { countItems } from '../terminal/take-first.ts'
import type { WorkspaceScope } from './workspace-scope.ts'

/** Search flags that exclude results. */
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

function describeEmptyWorkspace(bases: number, flags: NarrowingSearchFlags): string {
  const where = formatCounted(bases, 'knowledge base')
  return `  no results in ${where}\n  ${bases === 0 ? 'wb kb create handbook' : suggestForFlags(flags)}`
}

function suggestForBase(held: number, name: string, flags: NarrowingSearchFlags): string {
  return held === 0 ? `wb kb ingest ${name} ./my-folder` : suggestForFlags(flags)
}

function suggestForFlags({ filter, where, saved, mode }: NarrowingSearchFlags): string {
  const [narrow] = Object.entries({ filter, where, saved }).flatMap(([flag, value]) => (value ? [flag] : []))
  if (narrow) return `try it without --${narrow}`
  if (mode === 'lexical') return 'try --mode hybrid, which also finds related words'
  return 'try other words, or fewer of them'
}
