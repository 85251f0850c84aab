import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { everything } from '../../client/client.ts'
import { filters, type KnowledgeFilter } from '../../contract/filters.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { isId } from '../id.ts'
import { pick, type Resolving } from './resolve.ts'

/** Flag `--kb` of commands that take a saved filter. */
export const baseFlag = Flags.string({
  char: 'k',
  summary: 'knowledge base, by name or id; the only one when left out',
})

/** Saved filter that a command uses. */
export const filterArg = Args.string({ description: 'name or id; the only one when left out' })

/**
 * Finds a saved filter by name or ID. Without one, returns the only filter of the knowledge base.
 *
 * @throws WbError knowledge_filter_not_found  when no filter matches; suggests a similar name
 * @throws UsageError                          when several filters match
 */
export async function findFilter(
  { client, choose }: Pick<Resolving, 'client' | 'choose'>,
  { workspaceId, knowledgeBaseId, name }: KnowledgeBase,
  wanted: string | undefined,
): Promise<KnowledgeFilter> {
  const params = { workspaceId, knowledgeBaseId }
  if (wanted !== undefined && isId(wanted))
    return client.call(filters.show, { params: { ...params, knowledgeFilterId: wanted } })
  const all = await everything(client.items(filters.list, { params }))
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
