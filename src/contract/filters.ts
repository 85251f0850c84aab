import { z } from 'zod'
import { member, needs } from './access.ts'
import { boundedText, filter, isoTimestamp, optionalTextUpTo } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

export const KnowledgeFilter = z
  .object({
    workspaceId: z.uuid(),
    knowledgeBaseId: z.uuid(),
    knowledgeFilterId: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    filter,
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp,
  })
  .meta({ id: 'KnowledgeFilter' })
export type KnowledgeFilter = z.output<typeof KnowledgeFilter>

const changeable = {
  name: boundedText(limits.nameChars),
  description: optionalTextUpTo(limits.descriptionChars),
  filter: filter
    .refine(
      condition => JSON.stringify(condition).length <= limits.savedFilterChars,
      `must be at most ${limits.savedFilterChars} characters long as JSON`,
    )
    .meta({ description: `the condition; its JSON must have at most ${limits.savedFilterChars} characters` }),
}

const FilterCreate = z.object({
  ...changeable,
  knowledgeFilterId: z.uuid().optional(),
  description: changeable.description.default(null),
})
export type FilterCreate = z.output<typeof FilterCreate>

const FilterPatch = z.object(changeable).partial()
export type FilterPatch = z.output<typeof FilterPatch>

const filtersPath = '/api/v1/workspaces/:workspaceId/knowledge-bases/:knowledgeBaseId/filters'
const filterPath = `${filtersPath}/:knowledgeFilterId` as const
const body = { kind: 'json', mode: 'lenient', limitBytes: limits.jsonBodyBytes } as const
const notFoundErrors = ['workspace_not_found', 'knowledge_base_not_found'] as const

export const filters = {
  list: route({
    method: 'GET',
    path: filtersPath,
    summary: 'List saved filters',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(KnowledgeFilter) },
    errors: [...notFoundErrors, 'invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: filtersPath,
    summary: 'Save a filter',
    access: needs('write:kb'),
    body: { ...body, schema: FilterCreate },
    replies: { 201: KnowledgeFilter },
    errors: [...notFoundErrors, 'conflict'],
  }),
  show: route({
    method: 'GET',
    path: filterPath,
    summary: 'Show a saved filter',
    access: member('read:content'),
    replies: { 200: KnowledgeFilter },
    errors: [...notFoundErrors, 'knowledge_filter_not_found'],
  }),
  update: route({
    method: 'PATCH',
    path: filterPath,
    summary: 'Change a saved filter',
    access: needs('write:kb'),
    body: { ...body, schema: FilterPatch },
    replies: { 200: KnowledgeFilter },
    errors: [...notFoundErrors, 'knowledge_filter_not_found', 'conflict'],
  }),
  delete: route({
    method: 'DELETE',
    path: filterPath,
    summary: 'Delete a saved filter',
    access: needs('write:kb'),
    replies: { 204: null },
    errors: [...notFoundErrors, 'knowledge_filter_not_found'],
  }),
}
