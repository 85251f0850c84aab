import { shellWord } from '../../base/shell-word.ts'
import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { builtInProvider, isProviderName } from '../../contract/providers.ts'
import { monitoringRoutes, type Probe } from '../../contract/runtime-routes.ts'
import { llmPresets } from '../../contract/services/presets.ts'
import type { ServiceProblem } from '../../contract/services.ts'
import { setup } from '../../contract/setup.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { type LocalConfig, probeConfiguredChat } from '../local.ts'
import { ServiceCalls } from '../services/service-calls.ts'
import type { Service } from '../services/service-types.ts'
import { formatCounted } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { type Finding, failed, ok, skipped, warning } from './check.ts'

/** Maximum number of workspaces whose services are checked. */
const workspacesMax = 10
/** Maximum number of services of one type to check in a workspace. */
const servicesMax = 20
const showConfigCommand = 'wb config show'
const noChatProviderFinding = skipped('no chat provider is configured')

/** Returns the result of the chat provider check that the runtime performs. */
export async function checkChatProvider(client: Client, signal: AbortSignal): Promise<Finding> {
  const { hasChatProvider } = await client.call(setup.status, {}, { signal })
  if (!hasChatProvider) return noChatProviderFinding
  try {
    return probeFinding((await client.call(monitoringRoutes.healthDetails, {}, { signal })).chat)
  } catch (error) {
    if (error instanceof WbError && (error.facts.wireStatus === 401 || error.facts.wireStatus === 403))
      return skipped('the runtime reports this only to its operator')
    throw error
  }
}

/** Checks the configured chat provider, for commands that open the runtime in their own process. */
export async function checkLocalChatProvider(local: LocalConfig): Promise<Finding> {
  const probe = await probeConfiguredChat(local)
  return probe ? probeFinding(probe) : noChatProviderFinding
}

function probeFinding({ status, detail }: Probe): Finding {
  const text = plainLine(detail)
  if (status === 'ok') return ok(text)
  return status === 'degraded'
    ? warning(text, showConfigCommand)
    : failed(`the chat provider ${text}`, showConfigCommand)
}

/** Checks embedding services for missing settings. Does not call their providers, because each call costs money. */
export async function checkEmbeddingServices(
  client: Client,
  signal: AbortSignal,
): Promise<Finding | Finding[]> {
  const services = await findServices('embedding', client, signal)
  const problems = problemFindings(services)
  const hosted = withoutProblem(services).filter(({ provider }) => isProviderName(provider))
  if (hosted.length === 0) return problems.length > 0 ? problems : ok('built in')
  const names = [...new Set(hosted.map(({ provider }) => provider))].sort().join(', ')
  const notCalled = skipped(
    `${formatCounted(hosted.length, 'service')} of ${names}; doctor does not call models`,
    'wb services list --type embedding',
  )
  return [...problems, notCalled]
}

/** Checks LLM services for missing settings. Does not call their models. */
export async function checkLlmServices(client: Client, signal: AbortSignal): Promise<Finding | Finding[]> {
  const services = await findServices('llm', client, signal)
  const problems = problemFindings(services)
  const { length } = withoutProblem(services)
  if (length === 0 && problems.length > 0) return problems
  return [
    ...problems,
    skipped(
      `${formatCounted(length, 'service')}; doctor does not call models`,
      'wb services list --type llm',
    ),
  ]
}

/** A service with its problem, or null. */
interface CheckedService {
  readonly service: Service
  readonly provider: string
  readonly workspace: string
  readonly problem: ServiceProblem | null
}

/** Returns the services of the first {@link workspacesMax} workspaces, except built-in embedders. */
async function findServices(
  type: 'embedding' | 'llm',
  client: Client,
  signal: AbortSignal,
): Promise<CheckedService[]> {
  const { items } = await client.call(workspaces.list, { query: { limit: workspacesMax } }, { signal })
  const lists = items.map(async ({ workspaceId, name }) => {
    const calls = new ServiceCalls(client, workspaceId)
    const services = await calls.listFirst(type, servicesMax, signal)
    return Promise.all(
      services
        .map(service => ({ service, provider: String(service.record.provider), workspace: name }))
        .filter(({ provider }) => provider !== builtInProvider)
        .map(async entry => ({ ...entry, problem: await calls.findProblem(entry.service, signal) })),
    )
  })
  return (await Promise.all(lists)).flat()
}

/** Name of the LLM service that every new workspace has. Using it is optional, so a missing key is not a warning. */
const defaultLlmName = llmPresets['openrouter-gpt-4o-mini'].name

function withoutProblem(services: readonly CheckedService[]): CheckedService[] {
  return services.filter(({ problem }) => problem === null)
}

function problemFindings(services: readonly CheckedService[]): Finding[] {
  return services.flatMap(({ service: { type, record }, workspace, problem }) => {
    if (!problem) return []
    const command = `wb services show ${shellWord(record.name)} --type ${type} --workspace ${shellWord(workspace)}`
    const createFinding = record.name === defaultLlmName ? skipped : warning
    return [createFinding(plainLine(problem.message), command)]
  })
}
