import type { Handlers } from '../access/caller.ts'
import type { Clock } from '../base/clock.ts'
import type { IngestLoad, monitoringRoutes } from '../contract/runtime-routes.ts'
import { hasChatProvider } from '../models/chat/chat-provider.ts'
import type { BuildInfo, Metrics } from './metrics.ts'
import { type ChatProbeDependencies, probe, probeChatProvider, probeControlPlane } from './probes.ts'
import type { RecentErrors } from './recent-errors.ts'

export interface OperationDependencies extends ChatProbeDependencies {
  readonly clock: Clock
  readonly build: BuildInfo
  /** Returns the number of workspaces. Called to check that the control plane responds. */
  readonly countWorkspaces: () => Promise<number>
  /** Checks for free disk space. @throws control_plane_unavailable  when the disk of the control plane is full */
  readonly requireSpace: () => Promise<void>
  readonly ingestLoad: () => Promise<IngestLoad>
  /** Returns the number of policy decisions that this process could not store. */
  readonly countLostDecisions: () => number
}

/** Returns the handlers for metrics, health details and recent errors. */
export function operationHandlers(
  deps: OperationDependencies,
  { metrics, errors }: { metrics: Metrics; errors: RecentErrors },
): Handlers<typeof monitoringRoutes> {
  const { clock } = deps
  const ingestLoad = () => deps.ingestLoad().catch(() => null)
  const notFound = 'binary-not-found' as const
  return {
    async metrics() {
      const { contentType, text } = await metrics.text(await ingestLoad())
      return { status: 200, body: text, headers: { 'content-type': contentType } }
    },
    async healthDetails() {
      const [controlPlane, chat, ingest] = await Promise.all([
        probe(clock, () => probeControlPlane(deps)),
        hasChatProvider(deps, deps.environment)
          ? probe(clock, signal => probeChatProvider(deps, signal))
          : ({ status: 'down', detail: 'no chat provider is configured', durationMs: 0 } as const),
        ingestLoad(),
      ])
      const { capacity, count } = errors
      return { status: 200, body: { controlPlane, chat, ingest, recentErrors: { capacity, count } } }
    },
    recentErrors: () => ({
      status: 200,
      body: { capacity: errors.capacity, entries: errors.list() },
    }),
    vendorCli: () => ({ status: 200, body: { detected: false, reason: notFound } }),
    vendorProfiles: () => ({ status: 200, body: { available: false, reason: notFound } }),
  }
}
