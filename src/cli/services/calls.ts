import { type Client, everything } from '../../client/client.ts'
import { limits } from '../../contract/limits.ts'
import type { Route } from '../../contract/route.ts'
import { type Kind, pick, type Resolving } from '../find/resolve.ts'
import { isId } from '../id.ts'
import { kinds, type Service, type ServiceType, serviceTypes } from './kinds.ts'

type Fields = Readonly<Record<string, unknown>>

/** Calls on services of any type; the four differ in their fields alone. */
export class ServiceCalls {
  constructor(
    private readonly client: Client,
    private readonly workspaceId: string,
  ) {}

  async *list(type: ServiceType): AsyncGenerator<Service> {
    const route: Route = kinds[type].routes.list
    const request = { params: { workspaceId: this.workspaceId }, query: { limit: limits.pageMax } }
    for await (const record of this.client.items(route, request)) yield serviceOf(type, record)
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

  async delete({ type, id }: Service): Promise<void> {
    await this.client.call<Route>(kinds[type].routes.delete, { params: this.params(type, id) } as object)
  }

  /**
   * The service that is meant, by id or name.
   *
   * @throws WbError     the type's not-found code, with what was probably meant
   * @throws UsageError  several could be meant
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
    code: kinds[type ?? 'chunking'].notFound,
    list: `wb services list${listed}`,
    create: [`wb services create${listed}`],
  }
}

function serviceOf(type: ServiceType, answer: unknown): Service {
  const record = answer as Service['record']
  return { type, id: String(record[kinds[type].idField]), record }
}
