import { z } from 'zod'
import type { Handlers } from '../access/caller.ts'
import { chunkingServices, embeddingServices, llmServices, rerankingServices } from '../contract/services.ts'
import { chainedPage, type OpenedList, pageResult, pagingArguments } from './pages.ts'
import type { RouteCaller } from './route-caller.ts'
import { declareArgument, declareTool, type FacadeTool } from './tool.ts'

export interface ServiceToolDependencies {
  /** Handlers of the routes that the tool calls. */
  readonly routes: {
    readonly chunkingServices: Pick<Handlers<typeof chunkingServices>, 'list'>
    readonly embeddingServices: Pick<Handlers<typeof embeddingServices>, 'list'>
    readonly rerankingServices: Pick<Handlers<typeof rerankingServices>, 'list'>
    readonly llmServices: Pick<Handlers<typeof llmServices>, 'list'>
  }
}

const kinds = ['chunking', 'embedding', 'reranking', 'llm'] as const
type ServiceKindName = (typeof kinds)[number]

/** One item of the list. */
interface ListedService {
  readonly kind: ServiceKindName
  readonly serviceId: string
  readonly name: string
  readonly description: string | null
  readonly status: string
  readonly model: string | null
}

export function serviceTools({ routes }: ServiceToolDependencies): FacadeTool[] {
  return [
    declareTool({
      name: 'list_services',
      title: 'List services',
      description:
        'List the services of this workspace: chunking (splits texts), embedding, reranking, and llm (answers). Needed only to choose services for create_knowledge_base.',
      input: {
        kind: declareArgument(
          z.enum(kinds).optional(),
          'Kind of service; all kinds if omitted.',
          'embedding',
        ),
        ...pagingArguments,
      },
      example: { kind: 'embedding' },
      async run({ kind, ...query }, { routeCaller }) {
        const requestedKinds = kind ? [kind] : kinds
        const open = async (position: string | null) =>
          openList(requestedKinds, position, routeCaller, routes)
        return pageResult(await chainedPage({ open }, query))
      },
    }),
  ]
}

function openList(
  requestedKinds: readonly ServiceKindName[],
  position: string | null,
  routeCaller: RouteCaller,
  routes: ServiceToolDependencies['routes'],
): OpenedList<ListedService> | undefined {
  const index = position === null ? 0 : requestedKinds.indexOf(position as ServiceKindName)
  const kind = requestedKinds[index]
  if (!kind) return undefined
  return {
    next: requestedKinds[index + 1] ?? null,
    read: query => pageReaders(routeCaller, routes)[kind](query),
  }
}

type ReadPage = OpenedList<ListedService>['read']

/** Returns functions that read a page of services, by kind of service. */
function pageReaders(
  routeCaller: RouteCaller,
  routes: ServiceToolDependencies['routes'],
): Record<ServiceKindName, ReadPage> {
  return {
    chunking: query =>
      routeCaller.page(chunkingServices.list, routes.chunkingServices.list, query, service =>
        toListedService('chunking', service.chunkingServiceId, service, service.strategy),
      ),
    embedding: query =>
      routeCaller.page(embeddingServices.list, routes.embeddingServices.list, query, service =>
        toListedService('embedding', service.embeddingServiceId, service, service.modelName),
      ),
    reranking: query =>
      routeCaller.page(rerankingServices.list, routes.rerankingServices.list, query, service =>
        toListedService('reranking', service.rerankingServiceId, service, service.modelName),
      ),
    llm: query =>
      routeCaller.page(llmServices.list, routes.llmServices.list, query, service =>
        toListedService('llm', service.llmServiceId, service, service.modelName),
      ),
  }
}

type NamedService = Pick<ListedService, 'name' | 'description' | 'status'>

function toListedService(
  kind: ServiceKindName,
  serviceId: string,
  { name, description, status }: NamedService,
  model: string | null,
): ListedService {
  return { kind, serviceId, name, description, status, model }
}
