import type { Caller } from '../../src/access/caller.ts'
import { fullVisibility } from '../../src/access/full-visibility.ts'
import { scopeToWorkspace as seenByWorkspace } from '../../src/access/scope-to-workspace.ts'
import { type AuthContext, anonymousContext, subjectName } from '../../src/access/subject.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'
import type { Log } from '../../src/base/log.ts'
import type { Access } from '../../src/contract/access.ts'
import { WbError } from '../../src/contract/errors.ts'
import { api } from '../../src/contract/index.ts'
import type { Route, Topic } from '../../src/contract/route.ts'
import { type App, type AppParts, createApp } from '../../src/http/app.ts'
import type { RouteTopics } from '../../src/http/route-topics.ts'
import { TestClock } from '../harness/runtime.ts'
import { settings } from '../http/stage.ts'
import { ownId, stored } from './requests.ts'

/** Say nothing. */
export const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** Every route of the product, with rules of its own: to exchange one leaves the others as they are. */
export function ownSurface(): RouteTopics {
  const own = (topic: Topic) =>
    Object.fromEntries(
      Object.entries(topic).map(([name, route]) => [name, { ...route, access: { ...route.access } }]),
    )
  return Object.fromEntries(Object.entries(api).map(([name, topic]) => [name, own(topic)]))
}

export function routesOf(surface: RouteTopics): Route[] {
  return Object.values(surface).flatMap(topic => Object.values(topic))
}

/** How tables and registry call a route. */
export function lineOf({ method, path }: Route): string {
  return `${method} ${path}`
}

/** Have a route of a running surface guarded by another rule while something is done. */
export async function withRule<T>({ access }: Route, rule: Access, act: () => Promise<T>): Promise<T> {
  const before = { ...access }
  exchange(access, rule)
  try {
    return await act()
  } finally {
    exchange(access, before)
  }
}

function exchange(running: Access, rule: Access): void {
  for (const key of Object.keys(running)) Reflect.deleteProperty(running, key)
  Object.assign(running, rule)
}

const arrived = 'the handler was reached'

/** All that stands between a request and the handlers, which say no more than that they were reached. */
export function appOver(
  surface: RouteTopics,
  mode: AuthContext['mode'],
  authenticate: Authenticate,
  see: (auth: AuthContext) => void = () => {},
): App {
  const arrive = ({ body, params }: { body?: object; params: Record<string, string> }, caller: Caller) => {
    see(caller.auth)
    caller.checkChange(stored, body ?? {})
    const isOwn = Object.values(params).includes(ownId)
    caller.checkCreator({
      createdBy: isOwn ? subjectName(caller.auth) : 'apiKey:other',
      ownerPrincipalId: null,
    })
    throw new WbError('job_not_found', arrived)
  }
  const handlers = Object.fromEntries(
    Object.entries(surface).map(([name, topic]) => [
      name,
      Object.fromEntries(Object.keys(topic).map(operation => [operation, arrive])),
    ]),
  )
  return createApp({
    api: surface,
    handlers: handlers as AppParts<RouteTopics>['handlers'],
    authenticate,
    anonymous: anonymousContext(mode),
    scopeToWorkspace: (auth, workspaceId) => seenByWorkspace(auth, workspaceId, async () => undefined),
    audit: {
      note() {},
      draft() {
        throw new Error('nothing is done here that would be recorded')
      },
    },
    visibility: fullVisibility,
    log: quiet,
    clock: new TestClock(),
    settings: { ...settings, strictErrors: false },
  })
}

/** What an application answered, in the words of the tables; anything else as it is. */
export async function answerOf(response: Response): Promise<string> {
  const text = await response.text()
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  if (error.message === arrived) return 'yes'
  const challenge = response.headers.get('www-authenticate')
  if (response.status === 401 && error.code === 'unauthorized' && challenge === 'Bearer') return '401'
  if (response.status === 403 && error.code === 'forbidden' && challenge === null) return '403'
  return `${response.status} ${text}`
}
