import type { Handlers } from '../access/caller.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { withTimeout } from '../base/deadline.ts'
import { once } from '../base/once.ts'
import { packageBuild, packageVersion } from '../base/package.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import { errorCodes, errorDocs, errorRegistry, WbError } from '../contract/errors.ts'
import { openApiDocument } from '../contract/openapi.ts'
import type { IngestLoad, runtimeRoutes } from '../contract/runtime-routes.ts'
import { renderDocs } from './docs/page.ts'
import type { RouteTopics } from './route-topics.ts'

/** Time limit for the checks of `/readyz`, in milliseconds. */
const readyTimeoutMs = 4_000

/**
 * Version of the running build, from `APP_VERSION`, `APP_COMMIT` and `APP_BUILD_TIME`, or from the package.
 */
export interface RunningBuild {
  readonly version: string
  readonly commit: string
  /** ISO 8601 timestamp with milliseconds. */
  readonly buildTime: string
}

/** Returns the build that `/version` reports. */
export function runningBuild({ app }: ConfigEnvironment, clock: Clock): RunningBuild {
  const built = packageBuild()
  return {
    version: app.version ?? packageVersion(),
    commit: app.commit ?? built?.commit ?? 'unknown',
    buildTime: app.buildTime ?? built?.buildTime ?? timestamp(clock),
  }
}

export interface RuntimeHandlerDependencies {
  readonly build: RunningBuild
  /** Routes that the API reference describes. */
  readonly api: RouteTopics
  readonly clock: Clock
  /** True if workspaces are available as MCP servers. */
  readonly mcpEnabled: boolean
  /** Returns the number of workspaces. Also shows that the control plane responds. */
  countWorkspaces(): Promise<number>
  /** @throws control_plane_unavailable  when the disk of the control plane is full */
  requireSpace?(): Promise<void>
  /** Returns the ingest load of this process. Absent if the process runs no ingest jobs. */
  ingestLoad?(): Promise<IngestLoad>
}

/** Returns the handlers for health, version, features and the API reference. */
export function runtimeHandlers(deps: RuntimeHandlerDependencies): Handlers<typeof runtimeRoutes> {
  const { build } = deps
  const reference = once(() => openApiDocument(deps.api, { version: build.version }))
  const page = once(() => renderDocs(reference()))
  const codes = errorCodes.map(code => {
    const { status, hint } = errorRegistry[code]
    return { code, defaultStatus: status, hint, docs: errorDocs(code) }
  })

  return {
    root: () => ({
      status: 200,
      body: { name: 'workbase', version: build.version, commit: build.commit, docs: '/docs' },
    }),
    health: () => ({ status: 200, body: { status: 'ok' } }),
    async ready() {
      const check = () => Promise.all([deps.countWorkspaces(), deps.ingestLoad?.(), deps.requireSpace?.()])
      const [workspaces, ingest] = await withTimeout(deps.clock, readyTimeoutMs, check).catch(
        throwUnavailable,
      )
      return { status: 200, body: { status: 'ready', workspaces, ...(ingest && { ingest }) } }
    },
    version: () => ({ status: 200, body: { ...build, node: process.version } }),
    features: (_input, { site }) => ({
      status: 200,
      body: {
        mcp: { enabled: deps.mcpEnabled, baseUrl: deps.mcpEnabled ? site.origin : null },
        ingestBatch: true,
      },
    }),
    errorCodes: () => ({ status: 200, body: { codes } }),
    docs: () => ({ status: 200, body: page().html, headers: page().headers }),
    openapi: () => ({ status: 200, body: reference() }),
  }
}

/** @throws control_plane_unavailable  always, because a check has failed or timed out */
function throwUnavailable(cause: unknown): never {
  if (cause instanceof WbError && cause.code === 'control_plane_unavailable') throw cause
  throw new WbError('control_plane_unavailable', 'the control plane does not respond', {}, { cause })
}
