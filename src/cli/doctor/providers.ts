import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { operation, type Probe } from '../../contract/operational.ts'
import { isProviderName } from '../../contract/providers.ts'
import { embeddingServices } from '../../contract/services/embedding.ts'
import { setup } from '../../contract/setup.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { chatProviderProbed, type LocalConfig } from '../local.ts'
import { counted } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { type Finding, failed, ok, skipped, warning } from './check.ts'

/** Workspaces that are asked for their services. */
const workspacesMax = 10
const where = 'wb config show'
const none = skipped('no chat provider is configured')

/** Whether the chat provider answers, by what the runtime says of it. */
export async function chatFound(client: Client, signal: AbortSignal): Promise<Finding> {
  const { hasChatProvider } = await client.call(setup.status, {}, { signal })
  if (!hasChatProvider) return none
  try {
    return probeFound((await client.call(operation.healthDetails, {}, { signal })).chat)
  } catch (error) {
    if (error instanceof WbError && (error.facts.wireStatus === 401 || error.facts.wireStatus === 403))
      return skipped('the runtime tells its operator alone')
    throw error
  }
}

/** The same where each command has the runtime in itself: this process asks. */
export async function chatFoundFromHere(local: LocalConfig): Promise<Finding> {
  const probe = await chatProviderProbed(local)
  return probe ? probeFound(probe) : none
}

function probeFound({ status, detail }: Probe): Finding {
  const said = plainLine(detail)
  if (status === 'ok') return ok(said)
  return status === 'degraded' ? warning(said, where) : failed(`the chat provider ${said}`, where)
}

/** Embedding providers are not asked, as each question to one is paid for; which ones there are is said. */
export async function embeddingFound(client: Client, signal: AbortSignal): Promise<Finding> {
  const { items } = await client.call(workspaces.list, { query: { limit: workspacesMax } }, { signal })
  const lists = await Promise.all(
    items.map(({ workspaceId }) =>
      client.call(embeddingServices.list, { params: { workspaceId } }, { signal }),
    ),
  )
  const providers = lists.flatMap(list => list.items.map(({ provider }) => provider)).filter(isProviderName)
  if (providers.length === 0) return ok('built in')
  const names = [...new Set(providers)].sort().join(', ')
  return skipped(
    `${counted(providers.length, 'service')} of ${names}, which are not asked`,
    'wb services list --type embedding',
  )
}
