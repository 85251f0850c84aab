import { expect, test } from 'vitest'
import { checkEmbeddingServices, checkLlmServices } from '../../src/cli/doctor/providers.ts'
import type { Client } from '../../src/client/client.ts'
import { embeddingServices, llmServices } from '../../src/contract/services.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

const { signal } = new AbortController()

/** Creates a client of a runtime with one workspace, and counts the services whose problem is requested. */
function clientOf(services: readonly { provider: string; problem: object | null }[]) {
  const requests: string[] = []
  const client = {
    async call(
      route: object,
      { params }: { params: { embeddingServiceId?: string; llmServiceId?: string } },
    ) {
      if (route === workspaces.list) return { items: [{ workspaceId: 'w', name: 'default' }] }
      const rows = services.map(({ provider, problem }) => ({
        embeddingServiceId: provider,
        llmServiceId: provider,
        name: provider,
        provider,
        problem,
      }))
      if (route === embeddingServices.list || route === llmServices.list) return { items: rows }
      const id = params.embeddingServiceId ?? params.llmServiceId!
      requests.push(id)
      return rows.find(({ provider }) => provider === id)
    },
  }
  return { client: client as unknown as Client, requests }
}

test('does not check the built-in embedder for missing settings', async () => {
  const { client, requests } = clientOf([
    { provider: 'workbase', problem: null },
    { provider: 'openai', problem: null },
  ])
  expect(await checkEmbeddingServices(client, signal)).toMatchObject([
    { state: 'skipped', detail: '1 service of openai; doctor does not call models' },
  ])
  expect(requests).toEqual(['openai'])
})

test('warns about a service whose provider the runtime cannot call', async () => {
  const message = 'has a provider that this runtime cannot call'
  const { client } = clientOf([{ provider: 'nvidia', problem: { message, hint: 'Use provider openai.' } }])
  expect(await checkEmbeddingServices(client, signal)).toMatchObject([{ state: 'warning', detail: message }])
})

test('counts services without a problem next to those with one', async () => {
  const problem = { message: 'lacks its credential', hint: 'Set it.' }
  const services = [
    { provider: 'openrouter', problem },
    { provider: 'ollama', problem: null },
  ]
  expect(await checkLlmServices(clientOf(services).client, signal)).toMatchObject([
    { state: 'warning', detail: 'lacks its credential' },
    { state: 'skipped', detail: '1 service; doctor does not call models' },
  ])
  expect(await checkEmbeddingServices(clientOf(services).client, signal)).toMatchObject([
    { state: 'warning', detail: 'lacks its credential' },
    { state: 'skipped', detail: '1 service of ollama; doctor does not call models' },
  ])
})
