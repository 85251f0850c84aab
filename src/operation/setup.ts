import type { Handlers } from '../access/caller.ts'
import type { Log } from '../base/log.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import { readManagedEnvState, writeManagedEnv } from '../config/managed-env.ts'
import type { Config } from '../config/schema.ts'
import { operator } from '../contract/access.ts'
import { WbError } from '../contract/errors.ts'
import { managedKeys, type setup } from '../contract/setup.ts'
import { hasChatProvider } from '../models/chat/chat-provider.ts'

/** Reason why a runtime has no control plane. It must not contain secrets, because every caller can read it. */
export interface BootError {
  readonly code: string
  readonly message: string
}

export interface SetupDependencies {
  readonly config: Config
  readonly environment: ConfigEnvironment
  /** Absolute path of the data directory. */
  readonly dataDir: string
  /** Control plane, or the reason why it is not available. */
  readonly controlPlane: { countWorkspaces(): Promise<number> } | { readonly bootError: BootError }
  /** Reopens the runtime after its requests have finished; undefined if it cannot be reopened. */
  readonly restart: (() => void) | undefined
  readonly log: Log
}

/** Returns the handlers of the setup routes. They never return the value of an environment variable. */
export function setupHandlers(deps: SetupDependencies): Handlers<typeof setup> {
  const { config, environment, dataDir, log } = deps
  return {
    async status(_input, caller) {
      const { path, ...file } = readManagedEnvState(dataDir)
      const isOperator = await caller.can(operator)
      const configuredKeys = managedKeys.filter(key => isSet(environment, key))
      return {
        status: 200,
        body: {
          ...(await controlPlaneStatus(deps)),
          hasChatProvider: hasChatProvider(config, environment),
          hasAstraCreds:
            isSet(environment, 'ASTRA_DB_API_ENDPOINT') && isSet(environment, 'ASTRA_DB_APPLICATION_TOKEN'),
          managedEnv: { path: isOperator ? path : null, ...file, configuredKeys },
        },
      }
    },
    writeEnv({ body }) {
      const values = new Map<string, string>()
      for (const [key, value] of Object.entries(body.values)) if (value) values.set(key, value)
      writeManagedEnv(dataDir, values)
      const written = [...values.keys()].sort()
      log.info({ written }, 'the file .env of the data directory was written')
      return {
        status: 200,
        body: { ok: true, managedEnv: readManagedEnvState(dataDir), written, restartRequired: true },
        audit: { label: written.join(',') },
      }
    },
    restart() {
      if (!deps.restart)
        throw new WbError('setup_restart_unavailable', 'this process cannot restart the runtime')
      log.info({}, 'a restart was requested')
      deps.restart()
      return {
        status: 202,
        body: { ok: true, note: 'the runtime will restart after the requests in progress have finished' },
      }
    },
  }
}

function isSet(environment: ConfigEnvironment, name: string): boolean {
  return (environment.get(name) ?? '').trim() !== ''
}

async function controlPlaneStatus({ config, controlPlane }: SetupDependencies) {
  if ('bootError' in controlPlane) return { ...notHealthy('unavailable'), bootError: controlPlane.bootError }
  const kind = config.controlPlane.driver
  try {
    const workspacesCount = await controlPlane.countWorkspaces()
    return { setupComplete: workspacesCount > 0, workspacesCount, controlPlane: { kind, healthy: true } }
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return notHealthy(kind)
  }
}

function notHealthy(kind: string) {
  return { setupComplete: false, workspacesCount: 0, controlPlane: { kind, healthy: false } }
}
