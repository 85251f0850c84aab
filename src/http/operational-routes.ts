import type { Handlers } from '../access/caller.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { withTimeout } from '../base/deadline.ts'
import { once } from '../base/once.ts'
import { packageBuild, packageVersion } from '../base/package.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import { errorCodes, errorDocs, errorRegistry, WbError } from '../contract/errors.ts'
import { openApiDocument } from '../contract/openapi.ts'
import type { IngestLoad, operational } from '../contract/operational.ts'
import { renderDocs } from './docs/page.ts'
import type { RouteTopics } from './route-topics.ts'

/** Timeout of `/readyz` for the control plane, in milliseconds. */
const readyTimeoutMs = 4_000

/**
 * Version of the running build: `APP_VERSION`, `APP_COMMIT` and `APP_BUILD_TIME`, or the values recorded in
 * this package.
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

export interface OperationalParts {
  readonly build: RunningBuild
  /** Routes that the API reference describes. */
  readonly api: RouteTopics
  readonly clock: Clock
  /** True if workspaces are served over MCP. */
  readonly mcpEnabled: boolean
  /** Returns the number of workspaces, which proves that the control plane responds. */
  countWorkspaces(): Promise<number>
  /** @throws control_plane_unavailable  when the disk of the control plane is full */
  requireSpace?(): Promise<void>
  /** Returns the ingest load of this process; absent if it runs no ingest. */
  ingestLoad?(): Promise<IngestLoad>
}

/** Returns the handlers for health, version, features and the API reference. */
export function operationalHandlers(parts: OperationalParts): Handlers<typeof operational> {
  const { build } = parts
  const reference = once(() => openApiDocument(parts.api, { version: build.version }))
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
      const ask = () => Promise.all([parts.countWorkspaces(), parts.ingestLoad?.(), parts.requireSpace?.()])
      const [workspaces, ingest] = await withTimeout(parts.clock, readyTimeoutMs, ask).catch(throwUnavailable)
      return { status: 200, body: { status: 'ready', workspaces, ...(ingest && { ingest }) } }
    },
    version: () => ({ status: 200, body: { ...build, node: process.version } }),
    features: (_input, { site }) => ({
      status: 200,
      body: {
        mcp: { enabled: parts.mcpEnabled, baseUrl: parts.mcpEnabled ? site.origin : null },
        ingestBatch: true,
      },
    }),
    errorCodes: () => ({ status: 200, body: { codes } }),
    docs: () => ({ status: 200, body: page().html, headers: page().headers }),
    openapi: () => ({ status: 200, body: reference() }),
  }
}

/** @throws control_plane_unavailable  always: a check failed or timed out */
function throwUnavailable(cause: unknown): never {
  if (cause instanceof WbError && cause.code === 'control_plane_unavailable') throw cause
  throw new WbError('control_plane_unavailable', 'the control plane does not answer', {}, { cause })
}
