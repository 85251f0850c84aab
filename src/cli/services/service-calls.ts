import { type Client, collect } from '../../client/client.ts'
import type { Route } from '../../contract/route.ts'
import type { ServiceProblem } from '../../contract/services.ts'
import { pickResource, type ResolveContext, type ResourceKind } from '../find/resolve.ts'
import { isId } from '../id.ts'
import {
  type Service,
  type ServiceType,
  serviceTypeDetails,
  serviceTypes,
  typeOfPreset,
} from './service-types.ts'

type Fields = Readonly<Record<string, unknown>>

/** API calls for services of any type. */
export class ServiceCalls {
  constructor(
    private readonly client: Client,
    private readonly workspaceId: string,
  ) {}

  async *list(type: ServiceType): AsyncGenerator<Service> {
    const route: Route = serviceTypeDetails[type].routes.list
    const request = { params: { workspaceId: this.workspaceId } }
    for await (const record of this.client.items(route, request)) yield toService(type, record)
  }

  /** Returns the first `limit` services of a type. */
  async listFirst(type: ServiceType, limit: number, signal: AbortSignal): Promise<Service[]> {
    const route: Route = serviceTypeDetails[type].routes.list
    const request = { params: { workspaceId: this.workspaceId }, query: { limit } }
    const { items } = (await this.client.call(route, request, { signal })) as { items: unknown[] }
    return items.map(item => toService(type, item))
  }

  async *listAll(types: readonly ServiceType[]): AsyncGenerator<Service> {
    for (const type of types) yield* this.list(type)
  }

  create(type: ServiceType, body: Fields): Promise<Service> {
    return this.call(type, serviceTypeDetails[type].routes.create, undefined, body)
  }

  update(service: Service, body: Fields): Promise<Service> {
    return this.call(service.type, serviceTypeDetails[service.type].routes.update, service.id, body)
  }

  /** Returns the reason why a service cannot be used; null if no problem is known. */
  async findProblem({ type, id }: Service, signal?: AbortSignal): Promise<ServiceProblem | null> {
    if (type === 'chunking') return null
    const route: Route = serviceTypeDetails[type].routes.show
    const request = { params: this.params(type, id), query: { includeProblem: 'true' } } as object
    const { problem } = (await this.client.call(route, request, signal && { signal })) as {
      problem?: ServiceProblem | null
    }
    return problem ?? null
  }

  async delete({ type, id }: Service): Promise<void> {
    await this.client.call<Route>(serviceTypeDetails[type].routes.delete, {
      params: this.params(type, id),
    } as object)
  }

  /**
   * Finds a service by ID or name.
   *
   * @throws WbError     when no service matches; the code depends on the type, and the hint suggests a similar name
   * @throws UsageError  when several services match
   */
  async find(
    reference: string,
    type: ServiceType | undefined,
    { promptForChoice }: ResolveContext,
  ): Promise<Service> {
    const types = type ? [type] : serviceTypes
    const services = await collect(this.listAll(types))
    const all = services.map(row => ({ row, id: row.id, name: row.record.name }))
    const withId = all.filter(({ id }) => id === reference)
    const candidates = isId(reference) && withId.length > 0 ? withId : all
    return pickResource(candidates, reference, resourceKindFor(type), promptForChoice)
  }

  private async call(
    type: ServiceType,
    route: Route,
    id: string | undefined,
    body: Fields,
  ): Promise<Service> {
    const request = { params: this.params(type, id), body } as object
    return toService(type, await this.client.call(route, request))
  }

  private params(type: ServiceType, id: string | undefined): Record<string, string> {
    return {
      workspaceId: this.workspaceId,
      ...(id === undefined ? {} : { [serviceTypeDetails[type].idField]: id }),
    }
  }
}

function resourceKindFor(type: ServiceType | undefined): ResourceKind {
  const flag = type === undefined ? '' : ` --type ${type}`
  return {
    noun: type === undefined ? 'service' : serviceTypeDetails[type].noun,
    notFoundCode: type === undefined ? 'not_found' : serviceTypeDetails[type].notFoundCode,
    listCommand: `wb services list${flag}`,
    createCommands: [`wb services create${flag}`],
    createCommandFor: name => {
      const presetType = typeOfPreset(name)
      const fits = presetType !== undefined && (type === undefined || presetType === type)
      return fits ? `wb services create --preset ${name}` : undefined
    },
  }
}

function toService(type: ServiceType, response: unknown): Service {
  const record = response as Service['record']
  return { type, id: String(record[serviceTypeDetails[type].idField]), record }
}
