import type { Caller } from '../../src/access/caller.ts'
import { scopeToWorkspace as seenByWorkspace } from '../../src/access/scope-to-workspace.ts'
import { type AuthContext, anonymousContext, subjectName } from '../../src/access/subject.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'
import type { Log } from '../../src/base/log.ts'
import type { Access } from '../../src/contract/access.ts'
import { WbError } from '../../src/contract/errors.ts'
import { api } from '../../src/contract/index.ts'
import type { Route, Topic } from '../../src/contract/route.ts'
import { type App, type AppDependencies, createApp } from '../../src/http/app.ts'
import type { RouteTopics } from '../../src/http/route-topics.ts'
import { openAccess } from '../harness/open-access.ts'
import { TestClock } from '../harness/runtime.ts'
import { settings } from '../http/test-app.ts'
import { ownId, storedFields } from './requests.ts'

/** A log that discards its lines. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** Returns a copy of all routes, so that a test can replace the rule of one. */
export function copyRoutes(): RouteTopics {
  const own = (topic: Topic) =>
    Object.fromEntries(
      Object.entries(topic).map(([name, route]) => [name, { ...route, access: { ...route.access } }]),
    )
  return Object.fromEntries(Object.entries(api).map(([name, topic]) => [name, own(topic)]))
}

export function routesOf(surface: RouteTopics): Route[] {
  return Object.values(surface).flatMap(topic => Object.values(topic))
}

/** Returns the name of a route in the tables and the registry. */
export function routeName({ method, path }: Route): string {
  return `${method} ${path}`
}

/** Replaces the rule of a route while `act` runs. */
export async function withReplacedRule<T>(
  { access }: Route,
  rule: Access,
  act: () => Promise<T>,
): Promise<T> {
  const before = { ...access }
  replaceRule(access, rule)
  try {
    return await act()
  } finally {
    replaceRule(access, before)
  }
}

function replaceRule(running: Access, rule: Access): void {
  for (const key of Object.keys(running)) Reflect.deleteProperty(running, key)
  Object.assign(running, rule)
}

const handlerReached = 'the handler was reached'

/** Creates an application whose handlers check access and then throw a recognizable error. */
export function createRouteApp(
  surface: RouteTopics,
  mode: AuthContext['mode'],
  authenticate: Authenticate,
  see: (auth: AuthContext) => void = () => {},
): App {
  const handle = ({ body, params }: { body?: object; params: Record<string, string> }, caller: Caller) => {
    see(caller.auth)
    caller.checkChange(storedFields, body ?? {})
    const isOwn = Object.values(params).includes(ownId)
    caller.checkCreator({
      createdBy: isOwn ? subjectName(caller.auth) : 'apiKey:other',
      ownerPrincipalId: null,
    })
    throw new WbError('job_not_found', handlerReached)
  }
  const handlers = Object.fromEntries(
    Object.entries(surface).map(([name, topic]) => [
      name,
      Object.fromEntries(Object.keys(topic).map(operation => [operation, handle])),
    ]),
  )
  return createApp({
    api: surface,
    handlers: handlers as AppDependencies<RouteTopics>['handlers'],
    authenticate,
    anonymous: anonymousContext(mode),
    scopeToWorkspace: (auth, workspaceId) => seenByWorkspace(auth, workspaceId, async () => undefined),
    audit: {
      note() {},
      draft() {
        throw new Error('nothing is done here that would be recorded')
      },
    },
    rowAccess: openAccess,
    log: silentLog,
    clock: new TestClock(),
    settings: { ...settings, strictErrors: false },
  })
}

/**
 * Returns the answer of an application in the words of the tables, or the whole response if it matches no answer.
 */
export async function answerOf(response: Response): Promise<string> {
  const text = await response.text()
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  if (error.message === handlerReached) return 'yes'
  const challenge = response.headers.get('www-authenticate')
  if (response.status === 401 && error.code === 'unauthorized' && challenge === 'Bearer') return '401'
  if (response.status === 403 && error.code === 'forbidden' && challenge === null) return '403'
  return `${response.status} ${text}`
}
