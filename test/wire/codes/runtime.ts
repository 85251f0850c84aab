import { onTestFinished } from 'vitest'
import { WbError } from '../../../src/contract/errors.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { sendHeldBody } from '../../harness/body-attacks.ts'
import { RawBody, serveOverHttp } from '../../harness/http-runtime.ts'
import { makeBase, makeWorkspace } from '../../harness/resources.ts'
import { open, type TestRuntimeOptions } from '../../harness/runtime.ts'
import { unknownId } from '../shapes.ts'
import type { Provocation, Provocations } from './provocation.ts'

const asking = { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } }

async function started(options?: TestRuntimeOptions) {
  return serveOverHttp(await open(options))
}

/** Sends a request to a runtime after its control-plane store starts to fail. */
function faulty(fault: (store: RowStore) => Partial<RowStore>, line: string): Provocation {
  return async () => {
    let isBroken = false
    const wb = await started({
      rows: store => {
        const broken = fault(store)
        return {
          get: (...given) => (isBroken && broken.get ? broken.get(...given) : store.get(...given)),
          list: (...given) => (isBroken && broken.list ? broken.list(...given) : store.list(...given)),
          count: (...given) => store.count(...given),
          measure: (...given) => store.measure(...given),
          atomic: (...given) =>
            isBroken && broken.atomic ? broken.atomic(...given) : store.atomic(...given),
          feed: store.feed,
        }
      },
    })
    const { workspaceId } = await makeWorkspace(wb)
    isBroken = true
    return wb.send(line.replace('{w}', workspaceId))
  }
}

const down = () => Promise.reject(new WbError('control_plane_unavailable', 'the store is away'))

export const runtime = {
  not_found: async () => (await started()).send('GET /nowhere'),
  validation_error: async () => (await started()).send('POST /api/v1/workspaces', {}),
  unauthorized: async () => (await started({ config: asking })).send('GET /api/v1/workspaces'),
  forbidden: async () => {
    const wb = await started({ config: asking })
    const place = await wb.sendAsOperator('POST /api/v1/workspaces', { name: 'one' })
    const keys = `/api/v1/workspaces/${place.body.workspaceId}/api-keys`
    const { body } = await wb.sendAsOperator(`POST ${keys}`, { label: 'reader', role: 'viewer' })
    return wb.send(`GET ${keys}`, undefined, { authorization: `Bearer ${body.plaintext}` })
  },
  forbidden_origin: async () =>
    (await started()).send(
      'POST /api/v1/workspaces',
      { name: 'one' },
      { origin: 'https://elsewhere.example' },
    ),
  rate_limited: async () => {
    const wb = await started({ config: { runtime: { rateLimit: { capacity: 1 } } } })
    await wb.send('GET /api/v1/workspaces')
    return wb.send('GET /api/v1/workspaces')
  },
  payload_too_large: async () =>
    (await started()).send(
      'POST /api/v1/workspaces',
      new RawBody(`{"name": "${'a'.repeat(10_000_000)}"}`, 'application/json'),
    ),
  overloaded: async () => {
    const bodyMemory = { totalBytes: 50_000_000, perCallerBytes: 50_000_000 }
    const wb = await started({ config: { runtime: { bodyMemory } } })
    const { path } = await makeBase(wb)
    const stop = new AbortController()
    onTestFinished(() => stop.abort())
    const ingest = { line: `POST ${path}/ingest`, declaredBytes: 49_500_000, sentBytes: 1_000 }
    const first = sendHeldBody({ ...ingest, port: Number(new URL(wb.url).port), stop: stop.signal })
    const large = new RawBody(`{"text": "${'a'.repeat(1_000_000)}"}`, 'application/json')
    // The first body is held as soon as the server has read its head.
    for (;;) {
      const answer = await Promise.race([wb.send(`POST ${path}/search`, large), first])
      if (typeof answer !== 'object' || answer.status !== 400) return answer as never
    }
  },
  headers_too_large: async () =>
    (await started()).send('GET /healthz', undefined, { 'x-long': 'a'.repeat(40_000) }),
  control_plane_unavailable: faulty(() => ({ get: down }), 'GET /api/v1/workspaces/{w}'),
  cascade_incomplete: faulty(store => {
    let writes = 0
    return { atomic: writing => (writes++ === 0 ? store.atomic(writing) : down()) }
  }, 'DELETE /api/v1/workspaces/{w}'),
  internal_error: async () => {
    const broken = () => Promise.reject(new TypeError('a defect'))
    const wb = await started({ content: store => ({ ...store, nearest: broken }) })
    const base = await makeBase(wb)
    return wb.send(`POST ${base.path}/search`, { text: 'wing', hybrid: false })
  },
  draining: async () => {
    const wb = await started()
    wb.runtime.app.drain()
    return wb.send('GET /api/v1/workspaces')
  },
  secret_release_not_found: async () => {
    const wb = await open()
    return wb.sendAsOperator(`DELETE /api/v1/secret-releases/${unknownId}`)
  },
  setup_restart_unavailable: async () => (await started()).send('POST /setup/restart'),
} satisfies Provocations
