import { hostname } from 'node:os'
import { AuditTrail } from './access/audit-trail.ts'
import { anonymousContext } from './access/subject.ts'
import { createOperatorAuthenticate } from './auth/open.ts'
import { systemClock } from './base/clock.ts'
import { readUsableAuthSecrets } from './config/auth-secrets.ts'
import { rescueHint, WbError } from './contract/errors.ts'
import { api } from './contract/index.ts'
import { runtimeRoutes } from './contract/runtime-routes.ts'
import { rescue, setup } from './contract/setup.ts'
import { createApp } from './http/app.ts'
import { createAppSettings } from './http/app-settings.ts'
import { runningBuild, runtimeHandlers } from './http/runtime-handlers.ts'
import { type BootError, setupHandlers } from './operation/setup.ts'
import { openRuntime, type Runtime, type RuntimeOverrides, type RuntimeSettings } from './runtime.ts'

/** The runtime of a server, in normal operation or in rescue mode. */
export interface ServerRuntime extends Pick<Runtime, 'app' | 'fetch' | 'close'> {
  /** Reason for rescue mode; undefined in normal operation. */
  readonly fault?: unknown
}

/**
 * Opens a runtime for a server. If the control plane cannot be opened, starts rescue mode: the runtime only reports its
 * state, accepts changes to its setup, and rejects all other requests.
 *
 * @param isRestart  true if the server is already running; in this case, any failure starts rescue mode
 * @throws validation_error  see `openRuntime`
 * @see docs/operating.md#rescue-mode
 */
export async function openServerRuntime(
  settings: RuntimeSettings,
  isRestart: boolean,
  overrides: RuntimeOverrides = {},
): Promise<ServerRuntime> {
  try {
    return await openRuntime(settings, overrides)
  } catch (fault) {
    if (!isRestart && !isControlPlaneFault(fault)) throw fault
    return openRescue(settings, fault)
  }
}

function isControlPlaneFault(fault: unknown): fault is WbError {
  if (!(fault instanceof WbError)) return false
  return fault.code === 'driver_unavailable' || fault.code.startsWith('control_plane_')
}

/**
 * Returns the error to show to callers. Messages about the control plane contain no secrets. Other messages are
 * replaced, because they could contain a path or an address.
 */
function bootErrorOf(fault: unknown): BootError {
  if (isControlPlaneFault(fault)) return { code: fault.code, message: fault.message }
  const code = fault instanceof WbError ? fault.code : 'internal_error'
  return { code, message: 'the runtime could not be opened; its log contains the reason' }
}

const { root, version, features, errorCodes, docs } = runtimeRoutes
/** Routes that do not need a store. */
const rescueRoutes = { operational: { root, version, features, errorCodes, docs }, setup, rescue }

function openRescue(settings: RuntimeSettings, fault: unknown): ServerRuntime {
  const { config, environment, dataDir, log } = settings
  const clock = systemClock
  const bootError = bootErrorOf(fault)
  const level = isControlPlaneFault(fault) ? 'info' : 'error'
  log[level]({ code: bootError.code, error: fault }, 'rescue mode: the runtime could not be opened')
  const unavailableError = () =>
    new WbError('control_plane_unavailable', `this runtime is in rescue mode: ${bootError.message}`, {
      hint: rescueHint,
    })
  const rows = { atomic: () => Promise.reject(unavailableError()) }
  const audit = new AuditTrail({ rows, log, clock, replicaId: hostname() || 'wb' })
  const degraded = () => ({ status: 503, body: { status: 'degraded', reason: bootError.code } }) as const
  const app = createApp({
    api: rescueRoutes,
    handlers: {
      operational: runtimeHandlers({
        build: runningBuild(environment, clock),
        api,
        clock,
        mcpEnabled: false,
        countWorkspaces: () => Promise.reject(unavailableError()),
      }),
      setup: setupHandlers({ ...settings, controlPlane: { bootError }, restart: settings.restart }),
      rescue: { health: degraded, ready: degraded },
    },
    authenticate: createOperatorAuthenticate({
      config: config.auth,
      secrets: readUsableAuthSecrets(config, environment),
      audit,
    }),
    anonymous: anonymousContext(config.auth.mode),
    scopeToWorkspace: caller => caller,
    audit,
    rowAccess: () => Promise.reject(unavailableError()),
    log,
    clock,
    settings: createAppSettings(config, {
      loopback: settings.loopback,
      uploadDir: dataDir,
      strictErrors: false,
    }),
    unmatchedError: unavailableError,
  })
  return {
    app,
    fault,
    fetch: request => app.fetch(request),
    async close() {
      app.drain()
      await app.idle()
      await audit.close()
    },
  }
}
