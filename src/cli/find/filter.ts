import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { everything } from '../../client/client.ts'
import { filters, type KnowledgeFilter } from '../../contract/filters.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { isId } from '../id.ts'
import { pick, type Resolving } from './resolve.ts'

/** `--kb` of commands on saved filters. */
export const baseFlag = Flags.string({
  char: 'k',
  summary: 'knowledge base, by name or id; the only one when left out',
})

/** The filter that a command is about. */
export const filterArg = Args.string({ description: 'name or id; the only one when left out' })

/**
 * A saved filter by name or id; the only one of its knowledge base when none is named.
 *
 * @throws WbError knowledge_filter_not_found  with what was probably meant
 * @throws UsageError                          several could be meant
 */
export async function findFilter(
  { client, choose }: Pick<Resolving, 'client' | 'choose'>,
  { workspaceId, knowledgeBaseId, name }: KnowledgeBase,
  wanted: string | undefined,
): Promise<KnowledgeFilter> {
  const params = { workspaceId, knowledgeBaseId }
  if (wanted !== undefined && isId(wanted))
    return client.call(filters.show, { params: { ...params, knowledgeFilterId: wanted } })
  const all = await everything(client.items(filters.list, { params, query: { limit: limits.pageMax } }))
  return pick(
    all.map(row => ({ row, id: row.knowledgeFilterId, name: row.name })),
    wanted,
    {
      one: `saved filter of ${name}`,
      code: 'knowledge_filter_not_found',
      list: `wb filters list ${name}`,
      create: [`wb filters create english --kb ${name} --where lang=en`],
    },
    choose,
  )
}
