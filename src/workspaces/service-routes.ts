import type { Caller, Handlers } from '../access/caller.ts'
import type { PageQuery } from '../contract/page.ts'
import type {
  ChunkingCreate,
  ChunkingService,
  chunkingServices,
  EmbeddingCreate,
  EmbeddingService,
  embeddingServices,
  LlmCreate,
  LlmService,
  llmServices,
  RerankingCreate,
  RerankingService,
  rerankingServices,
  ServiceProblem,
} from '../contract/services.ts'
import type { AnyService } from './service-kinds.ts'
import type { Services } from './services.ts'

type ServiceCaller = Pick<Caller, 'auth' | 'signal'>
type ServicePathParams<Name extends string = never> = Record<'workspaceId' | Name, string>

/** Returns handlers for the five operations on services of one kind. `idName` is the path parameter of the service ID. */
function serviceHandlers<Row extends AnyService, Create extends Partial<Row>, Name extends string>(
  services: Services<Row, Create>,
  idName: Name,
) {
  type Params = ServicePathParams<Name>
  return {
    list: async ({ params, query }: { params: ServicePathParams; query: PageQuery }) => ({
      status: 200 as const,
      body: await services.list(params.workspaceId, query),
    }),
    create: async ({ params, body }: { params: ServicePathParams; body: Create }, caller: ServiceCaller) => ({
      status: 201 as const,
      body: await services.create(params.workspaceId, body, caller),
    }),
    show: async ({ params }: { params: Params }) => ({
      status: 200 as const,
      body: await services.get(params.workspaceId, params[idName]),
    }),
    update: async ({ params, body }: { params: Params; body: Partial<Row> }, caller: ServiceCaller) => ({
      status: 200 as const,
      body: await services.update(params.workspaceId, params[idName], body, caller),
    }),
    delete: async ({ params }: { params: Params }, caller: ServiceCaller) => {
      await services.delete(params.workspaceId, params[idName], caller)
      return { status: 204 as const, body: undefined }
    },
  }
}

export function chunkingHandlers(
  services: Services<ChunkingService, ChunkingCreate>,
): Handlers<typeof chunkingServices> {
  return serviceHandlers(services, 'chunkingServiceId')
}

export function embeddingHandlers(
  services: Services<EmbeddingService, EmbeddingCreate>,
  problemOf: (service: EmbeddingService) => Promise<ServiceProblem | null>,
): Handlers<typeof embeddingServices> {
  const handlers = serviceHandlers(services, 'embeddingServiceId')
  return { ...handlers, show: showWithProblem(handlers.show, problemOf) }
}

export function rerankingHandlers(
  services: Services<RerankingService, RerankingCreate>,
  problemOf: (service: RerankingService) => Promise<ServiceProblem | null>,
): Handlers<typeof rerankingServices> {
  const handlers = serviceHandlers(services, 'rerankingServiceId')
  return { ...handlers, show: showWithProblem(handlers.show, problemOf) }
}

export function llmHandlers(
  services: Services<LlmService, LlmCreate>,
  problemOf: (service: LlmService) => Promise<ServiceProblem | null>,
): Handlers<typeof llmServices> {
  const handlers = serviceHandlers(services, 'llmServiceId')
  return { ...handlers, show: showWithProblem(handlers.show, problemOf) }
}

/** Returns a handler that responds with a service, and with its problem if the query requests it. */
function showWithProblem<Row, Params>(
  show: (request: { params: Params }) => Promise<{ status: 200; body: Row }>,
  problemOf: (service: Row) => Promise<ServiceProblem | null>,
) {
  return async ({ params, query }: { params: Params; query: { includeProblem?: string } }) => {
    const { status, body } = await show({ params })
    if (query.includeProblem !== 'true') return { status, body }
    return { status, body: { ...body, problem: await problemOf(body) } }
  }
}
