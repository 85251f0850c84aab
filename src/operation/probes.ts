import type { Clock } from '../base/clock.ts'
import { TimedOut, withTimeout } from '../base/deadline.ts'
import { discardBody } from '../base/read-body.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { Config } from '../config/schema.ts'
import { WbError } from '../contract/errors.ts'
import type { Probe } from '../contract/runtime-routes.ts'
import { defaultBaseUrl, parseEndpoint } from '../models/endpoint.ts'
import { requestModels } from '../models/model-catalog.ts'
import type { Outbound } from '../models/outbound.ts'
import { connectionProblemIn } from '../models/provider/connection-problem.ts'

/** Time after which a probe that has not finished is reported as `down`. */
const timeoutMs = 3_000

type ProbeResult = Omit<Probe, 'durationMs'>

/** Runs a check with a timeout, and measures its duration. */
export async function probe(
  clock: Clock,
  check: (signal: AbortSignal) => Promise<ProbeResult>,
): Promise<Probe> {
  const startedAt = clock.now()
  const result = await withTimeout(clock, timeoutMs, check).catch(unreachableResult)
  return { ...result, durationMs: clock.now() - startedAt }
}

function unreachableResult(error: unknown): ProbeResult {
  if (error instanceof TimedOut) return { status: 'down', detail: error.message }
  const problem = connectionProblemIn(error)
  return { status: 'down', detail: problem ? `${problem.reason}. ${problem.hint}` : 'does not respond' }
}

export interface ControlPlane {
  countWorkspaces(): Promise<number>
  /** @throws control_plane_unavailable  when the disk is full */
  requireSpace(): Promise<void>
}

/**
 * Checks the control plane. Returns `ok` if workspaces can be counted and there is disk space, and `degraded` if the
 * control plane can be read but not written.
 */
export async function probeControlPlane({
  countWorkspaces,
  requireSpace,
}: ControlPlane): Promise<ProbeResult> {
  const workspaces = await countWorkspaces()
  const problem = await requireSpace().then(
    () => undefined,
    (error: unknown) => (error instanceof WbError ? error.message : 'cannot be written'),
  )
  if (problem !== undefined) return { status: 'degraded', detail: problem }
  return { status: 'ok', detail: workspaces === 1 ? '1 workspace' : `${workspaces} workspaces` }
}

export interface ChatProbeDependencies {
  readonly chat: Config['chat']
  readonly environment: ConfigEnvironment
  readonly outbound: Outbound
}

/**
 * Checks the chat provider by requesting its models without a credential. A response that denies access also
 * proves that the provider responds.
 */
export async function probeChatProvider(
  deps: ChatProbeDependencies,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const { chat, environment, outbound } = deps
  const { provider } = chat
  const base = chat.baseUrl ?? defaultBaseUrl(provider, environment)
  const response = await requestModels(outbound, parseEndpoint(base, provider, '/chat/completions'), signal)
  await discardBody(response.body)
  return response.status < 500
    ? { status: 'ok', detail: `${provider} responds` }
    : { status: 'degraded', detail: `${provider} responds with status ${response.status}` }
}
