import type { Client } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { counted } from '../terminal/output.ts'
import { countItems } from '../terminal/take.ts'
import type { Everywhere } from './everywhere.ts'

/** Search flags that exclude results. */
interface Narrowing {
  filter?: string
  where?: string[]
  saved?: string
  mode?: string
}

/** Describes an empty result: the number of documents searched, and one suggestion. */
export async function nothingFound(search: {
  client: Client
  base: KnowledgeBase | Everywhere
  flags: Narrowing
}): Promise<string> {
  const { client, base, flags } = search
  if ('names' in base) return nothingAnywhere(base.names.size, flags)
  const params = { workspaceId: base.workspaceId, knowledgeBaseId: base.knowledgeBaseId }
  const held = await countItems(client.items(documents.list, { params }))
  return `  nothing found in ${base.name} (${counted(held, 'document')})\n  ${suggestion(held, base.name, flags)}`
}

function nothingAnywhere(bases: number, flags: Narrowing): string {
  const where = counted(bases, 'knowledge base')
  return `  nothing found in ${where}\n  ${bases === 0 ? 'wb kb create handbook' : suggested(flags)}`
}

function suggestion(held: number, name: string, flags: Narrowing): string {
  return held === 0 ? `wb kb ingest ${name} ./my-folder` : suggested(flags)
}

function suggested({ filter, where, saved, mode }: Narrowing): string {
  const [narrow] = Object.entries({ filter, where, saved }).flatMap(([flag, value]) => (value ? [flag] : []))
  if (narrow) return `try it without --${narrow}`
  if (mode === 'lexical') return 'try --mode hybrid, which also finds related words'
  return 'try other words, or fewer of them'
}
