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
import type { KnowledgeBases } from './knowledge-bases.ts'

/** A knowledge base. */
interface KnowledgeBaseKey {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
}

/** A filter of a knowledge base. */
interface FilterKey extends KnowledgeBaseKey {
  readonly knowledgeFilterId: string
}

/** Named filters of a knowledge base, for use in searches. */
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
  async list(
    { workspaceId, knowledgeBaseId }: KnowledgeBaseKey,
    query: PageQuery,
  ): Promise<RowPage<KnowledgeFilter>> {
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    const prefix = [workspaceId, knowledgeBaseId]
    return this.parts.pager.page(tables.knowledgeFilters, { index: 'byKnowledgeBase', prefix }, query)
  }

  /**
   * Saves a filter. Its name does not have to be unique.
   *
   * @throws validation_error  the filter cannot be parsed; the message contains the path of the problem
   * @throws workspace_not_found, knowledge_base_not_found
   * @throws conflict          the id is taken
   */
  async create(
    { workspaceId, knowledgeBaseId }: KnowledgeBaseKey,
    body: FilterCreate,
  ): Promise<KnowledgeFilter> {
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
  async get(place: FilterKey): Promise<KnowledgeFilter> {
    const stored = await this.parts.rows.get(tables.knowledgeFilters, keyOf(place))
    if (stored) return stored.row
    await this.parts.bases.get(place.workspaceId, place.knowledgeBaseId)
    throw filterNotFound(place)
  }

  /** @throws validation_error, workspace_not_found, knowledge_base_not_found, knowledge_filter_not_found */
  async update(place: FilterKey, patch: FilterPatch): Promise<KnowledgeFilter> {
    parseFilter(patch.filter)
    await this.get(place)
    const now = timestamp(this.parts.clock)
    const changed = await changeRow(this.parts.rows, tables.knowledgeFilters, keyOf(place), row => ({
      ...row,
      ...patch,
      updatedAt: now,
    }))
    if (!('row' in changed)) throw filterNotFound(place)
    return changed.row
  }

  /** @throws workspace_not_found, knowledge_base_not_found, knowledge_filter_not_found */
  async delete(place: FilterKey): Promise<void> {
    await this.get(place)
    const outcome = await this.parts.rows.atomic([
      { op: 'delete', table: tables.knowledgeFilters, key: keyOf(place) },
    ])
    if (!outcome.ok) throw filterNotFound(place)
  }

  /** Returns the condition of a saved filter; undefined if it matches everything. */
  async condition(place: FilterKey): Promise<Filter | undefined> {
    return parseFilter((await this.get(place)).filter)
  }
}

function keyOf({ workspaceId, knowledgeBaseId, knowledgeFilterId }: FilterKey): string[] {
  return [workspaceId, knowledgeBaseId, knowledgeFilterId]
}

function filterNotFound({ knowledgeFilterId }: FilterKey): WbError {
  return new WbError('knowledge_filter_not_found', `knowledge filter '${knowledgeFilterId}' not found`)
}
