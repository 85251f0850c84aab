import { requireWorkspace, workspaceNotFound } from '../access/workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId } from '../base/id.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import type { PageQuery } from '../contract/page.ts'
import type {
  ChunkingCreate,
  ChunkingService,
  EmbeddingCreate,
  EmbeddingService,
} from '../contract/services.ts'
import { changeRow } from '../storage/change.ts'
import type { Page, Pager } from '../storage/cursor.ts'
import type { Column, RowStore, Table, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/** What the runtime writes on a service of any kind. */
export interface Stamps {
  readonly workspaceId: string
  readonly createdAt: string
  readonly updatedAt: string
}

/** What tells one kind of service from another. `Create` is what a new one is made of. */
export interface ServiceKind<Row extends Stamps, Create> {
  readonly noun: string
  readonly table: Table<Row>
  /** A new service; an id that is left out is made. */
  compose(fields: Create, stamps: Stamps): Row
  idOf(row: Row): string
  /** Index of knowledge bases by the service that they bind. */
  readonly boundBy: string
  readonly notFound: ErrorCode
  readonly inUse: ErrorCode
  /** Fields that stored vectors depend on: fixed while a knowledge base binds the service. */
  readonly fixedWhileBound: readonly Column<Row>[]
}

export const chunkingKind: ServiceKind<ChunkingService, ChunkingCreate> = {
  noun: 'chunking service',
  table: tables.chunkingServices,
  compose: ({ chunkingServiceId = newId(), ...fields }, stamps) => ({
    ...fields,
    ...stamps,
    chunkingServiceId,
  }),
  idOf: row => row.chunkingServiceId,
  boundBy: 'byChunkingService',
  notFound: 'chunking_service_not_found',
  inUse: 'chunking_service_in_use',
  fixedWhileBound: [],
}

export const embeddingKind: ServiceKind<EmbeddingService, EmbeddingCreate> = {
  noun: 'embedding service',
  table: tables.embeddingServices,
  compose: ({ embeddingServiceId = newId(), ...fields }, stamps) => ({
    ...fields,
    ...stamps,
    embeddingServiceId,
  }),
  idOf: row => row.embeddingServiceId,
  boundBy: 'byEmbeddingService',
  notFound: 'embedding_service_not_found',
  inUse: 'embedding_service_in_use',
  fixedWhileBound: ['provider', 'modelName', 'embeddingDimension', 'distanceMetric'],
}

/** Services of one kind. Who only reads them leaves `Create` out. */
export class Services<Row extends Stamps, Create = never> {
  constructor(
    private readonly kind: ServiceKind<Row, Create>,
    private readonly parts: { rows: RowStore; pager: Pager; clock: Clock },
  ) {}

  /** @throws workspace_not_found */
  async list(workspaceId: string, query: PageQuery): Promise<Page<Row>> {
    await requireWorkspace(this.parts.rows, workspaceId)
    return this.parts.pager.page(this.kind.table, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  /**
   * @throws workspace_not_found
   * @throws conflict  the id is taken
   */
  async create(workspaceId: string, fields: Create): Promise<Row> {
    const now = timestamp(this.parts.clock)
    const row = this.kind.compose(fields, { workspaceId, createdAt: now, updatedAt: now })
    const outcome = await this.parts.rows.atomic([
      { op: 'require', table: tables.workspaces, key: [workspaceId] },
      { op: 'insert', table: this.kind.table, row },
    ])
    if (outcome.ok) return row
    if (outcome.at === 0) throw workspaceNotFound(workspaceId)
    throw new WbError('conflict', `${this.kind.noun} with id '${this.kind.idOf(row)}' already exists`)
  }

  /** @throws workspace_not_found, or the kind's own not-found code */
  async get(workspaceId: string, id: string): Promise<Row> {
    const stored = await this.parts.rows.get(this.kind.table, [workspaceId, id])
    if (stored) return stored.row
    await requireWorkspace(this.parts.rows, workspaceId)
    throw this.notFound(id)
  }

  /** @throws the kind's in-use code when a fixed field changes under a knowledge base */
  async update(workspaceId: string, id: string, patch: Partial<Row>): Promise<Row> {
    await this.get(workspaceId, id)
    const now = timestamp(this.parts.clock)
    const changed = await changeRow(
      this.parts.rows,
      this.kind.table,
      [workspaceId, id],
      row => ({ ...row, ...patch, updatedAt: now }),
      (before, after) =>
        this.kind.fixedWhileBound.some(field => before[field] !== after[field])
          ? [this.unbound(workspaceId, id)]
          : [],
    )
    if ('absent' in changed) throw this.notFound(id)
    if ('refused' in changed)
      throw new WbError(
        this.kind.inUse,
        `a knowledge base binds this ${this.kind.noun}; ${this.kind.fixedWhileBound.join(', ')} are fixed`,
      )
    return changed.row
  }

  /** @throws the kind's in-use code while a knowledge base binds the service */
  async delete(workspaceId: string, id: string): Promise<void> {
    await this.get(workspaceId, id)
    const outcome = await this.parts.rows.atomic([
      this.unbound(workspaceId, id),
      { op: 'delete', table: this.kind.table, key: [workspaceId, id] },
    ])
    if (outcome.ok) return
    if (outcome.at === 1) throw this.notFound(id)
    throw new WbError(this.kind.inUse, `a knowledge base binds this ${this.kind.noun}`)
  }

  /** The service that was made first in the workspace. */
  async first(workspaceId: string): Promise<Row | undefined> {
    const [stored] = await this.parts.rows.list(this.kind.table, {
      index: 'byWorkspace',
      prefix: [workspaceId],
      limit: 1,
    })
    return stored?.row
  }

  notFound(id: string): WbError {
    return new WbError(this.kind.notFound, `${this.kind.noun} '${id}' not found`)
  }

  private unbound(workspaceId: string, id: string): Write {
    return {
      op: 'requireNone',
      table: tables.knowledgeBases,
      index: this.kind.boundBy,
      prefix: [workspaceId, id],
    }
  }
}
