import { hostname } from 'node:os'
import { allowsAnonymous, usesOidc } from '../config/config-checks.ts'
import type { Config } from '../config/schema.ts'
import type { AppSettings } from './app.ts'

/**
 * Default maximum number of requests per client and window.
 *
 * @see docs/requirements.md#S8-08
 */
const remoteRequestsPerWindow = 600
/** Default maximum number of requests per window for clients on this machine. */
const localRequestsPerWindow = 60_000

/** Creates the settings of the application from the configuration. */
export function createAppSettings(
  config: Config,
  options: Pick<AppSettings, 'uploadDir' | 'strictErrors'> & { readonly loopback: boolean },
): AppSettings {
  const { runtime, auth } = config
  const { loopback, uploadDir, strictErrors } = options
  const { enabled, capacity, authCapacity, windowMs } = runtime.rateLimit
  return {
    requestIdHeader: runtime.requestIdHeader,
    production: runtime.environment === 'production',
    strictErrors,
    origin: {
      loopback,
      acceptsAnonymous: allowsAnonymous(config),
      publicOrigin: runtime.publicOrigin,
      allowedHosts: runtime.allowedHosts,
      allowedOrigins: runtime.allowedOrigins,
      machineName: hostname(),
      csrfOriginCheck: runtime.csrfOriginCheck,
      browserLogin: usesOidc(auth) && !!auth.oidc?.client,
    },
    trustProxyHeaders: runtime.trustProxyHeaders,
    bodyMemory: runtime.bodyMemory,
    streamsPerCaller: runtime.streamsPerCaller,
    uploadsPerCaller: runtime.uploadsPerCaller,
    uploadDir,
    rateLimits: enabled
      ? {
          windowMs,
          capacity: capacity ?? remoteRequestsPerWindow,
          directCapacity: capacity ?? (loopback ? localRequestsPerWindow : remoteRequestsPerWindow),
          authCapacity,
        }
      : null,
  }
}
