import { type Client, everything } from '../../client/client.ts'
import type { Route } from '../../contract/route.ts'
import { embeddingServices, llmServices, type ServiceProblem } from '../../contract/services.ts'
import { type Kind, pick, type Resolving } from '../find/resolve.ts'
import { isId } from '../id.ts'
import { kinds, type Service, type ServiceType, serviceTypes } from './kinds.ts'

type Fields = Readonly<Record<string, unknown>>

/** API calls for services of any type. The types differ only in their fields. */
export class ServiceCalls {
  constructor(
    private readonly client: Client,
    private readonly workspaceId: string,
  ) {}

  async *list(type: ServiceType): AsyncGenerator<Service> {
    const route: Route = kinds[type].routes.list
    const request = { params: { workspaceId: this.workspaceId } }
    for await (const record of this.client.items(route, request)) yield serviceOf(type, record)
  }

  /** Returns at most `limit` services of a type, in the order of the list. */
  async first(type: ServiceType, limit: number, signal: AbortSignal): Promise<Service[]> {
    const route: Route = kinds[type].routes.list
    const request = { params: { workspaceId: this.workspaceId }, query: { limit } }
    const { items } = (await this.client.call(route, request, { signal })) as { items: unknown[] }
    return items.map(item => serviceOf(type, item))
  }

  async *listAll(types: readonly ServiceType[]): AsyncGenerator<Service> {
    for (const type of types) yield* this.list(type)
  }

  create(type: ServiceType, body: Fields): Promise<Service> {
    return this.call(type, kinds[type].routes.create, undefined, body)
  }

  update(service: Service, body: Fields): Promise<Service> {
    return this.call(service.type, kinds[service.type].routes.update, service.id, body)
  }

  /** Returns why a service cannot be used; null if no problem is known. */
  async problemOf({ type, id }: Service, signal?: AbortSignal): Promise<ServiceProblem | null> {
    const { workspaceId } = this
    const query = { includeProblem: 'true' }
    const options = signal && { signal }
    if (type === 'llm') {
      const request = { params: { workspaceId, llmServiceId: id }, query }
      return (await this.client.call(llmServices.show, request, options)).problem ?? null
    }
    if (type !== 'embedding') return null
    const request = { params: { workspaceId, embeddingServiceId: id }, query }
    return (await this.client.call(embeddingServices.show, request, options)).problem ?? null
  }

  async delete({ type, id }: Service): Promise<void> {
    await this.client.call<Route>(kinds[type].routes.delete, { params: this.params(type, id) } as object)
  }

  /**
   * Finds a service by ID or name.
   *
   * @throws WbError     with the not-found code of the type, when no service matches; suggests a similar name
   * @throws UsageError  when several services match
   */
  async find(wanted: string, type: ServiceType | undefined, { choose }: Resolving): Promise<Service> {
    const types = type ? [type] : serviceTypes
    const all = await everything(this.listAll(types))
    const named = all.map(row => ({ row, id: row.id, name: row.record.name }))
    const ofIds = named.filter(({ id }) => id === wanted)
    const among = isId(wanted) && ofIds.length > 0 ? ofIds : named
    return pick(among, wanted, kindOf(type), choose)
  }

  private async call(
    type: ServiceType,
    route: Route,
    id: string | undefined,
    body: Fields,
  ): Promise<Service> {
    const request = { params: this.params(type, id), body } as object
    return serviceOf(type, await this.client.call(route, request))
  }

  private params(type: ServiceType, id: string | undefined): Record<string, string> {
    return { workspaceId: this.workspaceId, ...(id === undefined ? {} : { [kinds[type].idField]: id }) }
  }
}

function kindOf(type: ServiceType | undefined): Kind {
  const listed = type === undefined ? '' : ` --type ${type}`
  return {
    one: type === undefined ? 'service' : kinds[type].one,
    code: type === undefined ? 'not_found' : kinds[type].notFound,
    list: `wb services list${listed}`,
    create: [`wb services create${listed}`],
  }
}

function serviceOf(type: ServiceType, answer: unknown): Service {
  const record = answer as Service['record']
  return { type, id: String(record[kinds[type].idField]), record }
}
