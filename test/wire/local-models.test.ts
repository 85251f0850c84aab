import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { embeddingServices } from '../../src/contract/services.ts'
import { ModelStore } from '../../src/local-models/model-store.ts'
import { makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { fakeNativeRuntime, temporaryFolder, tinyDimension, writeTinyModel } from '../harness/tiny-model.ts'

const service = { provider: 'onnx', modelName: 'tiny', embeddingDimension: tinyDimension }

/** Opens a runtime to which the model `tiny` was added. */
async function openWithModel() {
  const wb = await open({ nativeRuntime: fakeNativeRuntime })
  const store = new ModelStore(wb.dataDir)
  await store.add(writeTinyModel(temporaryFolder()), 'tiny', {
    clock: systemClock,
    runtime: fakeNativeRuntime,
  })
  const { workspaceId } = await makeWorkspace(wb)
  return { wb, store, workspaceId }
}

test('a knowledge base uses a model that was added', async () => {
  const { wb, store, workspaceId } = await openWithModel()
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, service)
  const base = await makeBase(wb, { workspaceId, embeddingServiceId })
  await base.ingest('revoke keys')
  await base.ingest('apple')
  const [first] = await base.search('Revoke keys', { hybrid: false })
  expect(first).toMatchObject({ payload: { chunkText: 'revoke keys' }, score: expect.closeTo(1, 4) })

  store.remove('tiny')
  await expect(base.search('apple', { hybrid: false })).rejects.toMatchObject({
    code: 'embedding_unavailable',
    hint: 'wb models add FOLDER --name NAME',
  })
  const params = { workspaceId, embeddingServiceId }
  const shown = await wb.call(embeddingServices.show, { params, query: { includeProblem: 'true' } })
  expect(shown.problem?.message).toContain('has a model that was not added to this runtime')
})

test.each<[string, object, string]>([
  ['a model that was not added', { modelName: 'other' }, 'was not added to this runtime'],
  ['a path', { modelName: '../models/tiny' }, 'was not added to this runtime'],
  ['an absolute path', { modelName: '/etc' }, 'was not added to this runtime'],
  ['another dimension', { embeddingDimension: 3 }, 'has 16 dimensions'],
])('rejects a service with %s, also as a change', async (_, fields, message) => {
  const { wb, workspaceId } = await openWithModel()
  const path = `/api/v1/workspaces/${workspaceId}/embedding-services`
  const rejected = {
    status: 400,
    body: { error: { code: 'validation_error', message: expect.stringContaining(message) } },
  }
  expect(await wb.send(`POST ${path}`, { name: 'x', ...service, ...fields })).toMatchObject(rejected)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, service)
  expect(await wb.send(`PATCH ${path}/${embeddingServiceId}`, fields)).toMatchObject(rejected)
  expect((await wb.send(`PATCH ${path}/${embeddingServiceId}`, { description: 'tiny' })).status).toBe(200)
})

test('without onnxruntime-node, a service is rejected with the command that installs it', async () => {
  const { wb, workspaceId } = await openWithModel()
  const other = await open({ dataDir: wb.dataDir })
  const { status, body } = await other.send(`POST /api/v1/workspaces/${workspaceId}/embedding-services`, {
    name: 'x',
    ...service,
  })
  expect([status, body]).toMatchObject([
    400,
    {
      error: {
        message: expect.stringContaining('needs onnxruntime-node'),
        hint: expect.stringContaining('npm install'),
      },
    },
  ])
})
