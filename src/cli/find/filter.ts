import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { collect } from '../../client/client.ts'
import { filters, type KnowledgeFilter } from '../../contract/filters.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { isId } from '../id.ts'
import { pickResource, type ResolveContext } from './resolve.ts'

/** Flag `--kb` of commands that take a saved filter. */
export const baseFlag = Flags.string({
  char: 'k',
  summary: 'knowledge base name or ID [the only knowledge base]',
})

/** Argument for the saved filter that a command uses. */
export const filterArg = Args.string({ description: 'name or ID [the only filter]' })

/**
 * Finds a saved filter by name or ID. Without `nameOrId`, returns the only filter of the knowledge base, or lets the
 * user choose.
 *
 * @throws WbError knowledge_filter_not_found  no filter matches; suggests a similar name
 * @throws UsageError                          several filters match
 */
export async function findFilter(
  { client, promptForChoice }: Pick<ResolveContext, 'client' | 'promptForChoice'>,
  { workspaceId, knowledgeBaseId, name }: KnowledgeBase,
  nameOrId: string | undefined,
): Promise<KnowledgeFilter> {
  const params = { workspaceId, knowledgeBaseId }
  if (nameOrId !== undefined && isId(nameOrId))
    return client.call(filters.show, { params: { ...params, knowledgeFilterId: nameOrId } })
  const all = await collect(client.items(filters.list, { params }))
  return pickResource(
    all.map(row => ({ row, id: row.knowledgeFilterId, name: row.name })),
    nameOrId,
    {
      noun: `saved filter of ${name}`,
      notFoundCode: 'knowledge_filter_not_found',
      listCommand: `wb filters list ${name}`,
      createCommands: [`wb filters create english --kb ${name} --where lang=en`],
    },
    promptForChoice,
  )
}
