import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { ModelStore } from '../../src/local-models/model-store.ts'
import { fakeNativeRuntime, temporaryFolder, writeTinyModel } from '../harness/tiny-model.ts'
import { createSandbox } from './sandbox.ts'

test('models are listed and removed', async () => {
  const { wb, dataDir } = createSandbox()
  expect(await wb(['models', 'list'])).toMatchObject({
    stdout: '',
    stderr: expect.stringContaining('no models were added yet'),
  })
  const options = { clock: systemClock, runtime: fakeNativeRuntime }
  const model = await new ModelStore(dataDir).add(writeTinyModel(temporaryFolder()), 'tiny', options)
  expect((await wb(['models', 'list'])).stdout).toMatch(/^tiny\t16\t32\t/)
  expect(JSON.parse((await wb(['models', 'list', '--json'])).stdout)).toEqual([model])
  expect(await wb(['models', 'remove', 'tiny'])).toMatchObject({
    status: 0,
    stderr: '  ✓ removed model tiny\n',
  })
  expect(await wb(['models', 'remove', 'tiny'])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('no model "tiny"'),
  })
})

test('adding a model without onnxruntime-node says how to install it', async () => {
  const { wb } = createSandbox()
  const { status, stderr } = await wb(['models', 'add', writeTinyModel(temporaryFolder()), '--name', 'tiny'])
  expect(status).toBe(2)
  expect(stderr.replace(/\s+/g, ' ')).toContain('needs onnxruntime-node, which is not installed')
  expect(stderr).toContain('npm install onnxruntime-node')
  const missing = await wb(['models', 'add', temporaryFolder()])
  expect(missing.stderr.replace(/\s+/g, ' ')).toContain('has neither model.onnx nor onnx/model.onnx')
})
