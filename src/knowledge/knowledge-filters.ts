import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { WbError } from '../contract/errors.ts'
import type { FilterCreate, FilterPatch, KnowledgeFilter } from '../contract/filters.ts'
import type { PageQuery } from '../contract/page.ts'
import { changeRow } from '../storage/change-row.ts'
import type { Pager, RowPage } from '../storage/cursor.ts'
import { type Filter, parseFilter } from '../storage/filter.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import type { BaseKey } from './document-key.ts'
import type { KnowledgeBases } from './knowledge-bases.ts'

interface FilterKey extends BaseKey {
  readonly knowledgeFilterId: string
}

/** Reads and changes the saved filters of knowledge bases. */
export class KnowledgeFilters {
  constructor(
    private readonly parts: {
      rows: RowStore
      pager: Pager
      clock: Clock
      bases: Pick<KnowledgeBases, 'get'>
    },
  ) {}

  /** @throws workspace_not_found, knowledge_base_not_found */
  async list({ workspaceId, knowledgeBaseId }: BaseKey, query: PageQuery): Promise<RowPage<KnowledgeFilter>> {
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const prefix = [workspaceId, knowledgeBaseId]
    return this.parts.pager.page(tables.knowledgeFilters, { index: 'byKnowledgeBase', prefix }, query)
  }

  /**
   * Saves a filter. Several filters can have the same name.
   *
   * @throws validation_error  the filter is invalid; the message contains the path of the problem
   * @throws workspace_not_found, knowledge_base_not_found
   * @throws conflict          another filter has the requested ID
   */
  async create({ workspaceId, knowledgeBaseId }: BaseKey, body: FilterCreate): Promise<KnowledgeFilter> {
    parseFilter(body.filter)
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const now = timestamp(this.parts.clock)
    const { knowledgeFilterId = newId(), ...fields } = body
    const row = { workspaceId, knowledgeBaseId, knowledgeFilterId, ...fields, createdAt: now, updatedAt: now }
    const outcome = await this.parts.rows.atomic([
      { op: 'require', table: tables.knowledgeBases, key: [workspaceId, knowledgeBaseId] },
      { op: 'insert', table: tables.knowledgeFilters, row },
    ])
    if (outcome.ok) return row
    if (outcome.at === 0) await this.parts.bases.get(workspaceId, knowledgeBaseId)
    throw new WbError('conflict', `knowledge filter with id '${knowledgeFilterId}' already exists`)
  }

  /** @throws workspace_not_found, knowledge_base_not_found, knowledge_filter_not_found */
  async get(filterKey: FilterKey): Promise<KnowledgeFilter> {
    const stored = await this.parts.rows.get(tables.knowledgeFilters, keyOf(filterKey))
    if (stored) return stored.row
    await this.parts.bases.get(filterKey.workspaceId, filterKey.knowledgeBaseId)
    throw filterNotFound(filterKey)
  }

  /** @throws validation_error, workspace_not_found, knowledge_base_not_found, knowledge_filter_not_found */
  async update(filterKey: FilterKey, patch: FilterPatch): Promise<KnowledgeFilter> {
    parseFilter(patch.filter)
    await this.get(filterKey)
    const now = timestamp(this.parts.clock)
    const changed = await changeRow(this.parts.rows, tables.knowledgeFilters, keyOf(filterKey), row => ({
      ...row,
      ...patch,
      updatedAt: now,
    }))
    if (!('row' in changed)) throw filterNotFound(filterKey)
    return changed.row
  }

  /** @throws workspace_not_found, knowledge_base_not_found, knowledge_filter_not_found */
  async delete(filterKey: FilterKey): Promise<void> {
    await this.get(filterKey)
    const outcome = await this.parts.rows.atomic([
      { op: 'delete', table: tables.knowledgeFilters, key: keyOf(filterKey) },
    ])
    if (!outcome.ok) throw filterNotFound(filterKey)
  }

  /**
   * Returns a saved filter in parsed form; undefined if it matches everything.
   *
   * @throws workspace_not_found, knowledge_base_not_found, knowledge_filter_not_found
   */
  async getParsed(filterKey: FilterKey): Promise<Filter | undefined> {
    return parseFilter((await this.get(filterKey)).filter)
  }
}

function keyOf({ workspaceId, knowledgeBaseId, knowledgeFilterId }: FilterKey): string[] {
  return [workspaceId, knowledgeBaseId, knowledgeFilterId]
}

function filterNotFound({ knowledgeFilterId }: FilterKey): WbError {
  return new WbError('knowledge_filter_not_found', `knowledge filter '${knowledgeFilterId}' not found`)
}
