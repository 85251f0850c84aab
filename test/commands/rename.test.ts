import { expect, test } from 'vitest'
import { createSandbox } from './sandbox.ts'

test('wb kb rename keeps documents and the agents that use the knowledge base', {
  timeout: 60_000,
}, async () => {
  const { wb } = createSandbox()
  const id = (await wb(['kb', 'create', 'handbook'])).stdout.trim()
  await wb(['kb', 'ingest', 'handbook', '-', '--name', 'keys.md', '--no-wait'], {
    input: 'Keys are rotated every month.',
  })
  await wb(['agents', 'create', 'helper', '--kb', 'handbook'])
  const renamed = await wb(['kb', 'rename', 'handbook', 'manual'])
  expect(renamed).toEqual({
    status: 0,
    stdout: `${id}\n`,
    stderr: '',
  })
  expect((await wb(['agents', 'show', 'helper'])).stdout).toContain('manual')
  expect((await wb(['kb', 'search', 'manual', 'keys', '--no-wait'])).stdout).toContain('rotated')
  expect((await wb(['kb', 'search', 'handbook', 'keys'])).status).toBe(4)
  const records = await wb(['audit', 'list', '--action', 'kb.update', '--json'])
  expect(JSON.parse(records.stdout)).toMatchObject([
    { details: { label: 'manual', reason: 'was named handbook' } },
  ])
  await wb(['kb', 'create', 'handbook'])
  expect(await wb(['kb', 'rename', 'handbook', 'manual'])).toMatchObject({ status: 5 })
})
