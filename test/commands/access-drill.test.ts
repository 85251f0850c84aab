import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSandbox } from './sandbox.ts'

test('a drill deletes its copy of the store, and those of drills that were killed', async () => {
  const { wb } = createSandbox()
  await wb(['workspaces', 'create', 'demo'])
  await wb(['workspaces', 'update', 'demo', '--rlac'])
  const { pid } = spawnSync('true')
  const copy = mkdtempSync(join(tmpdir(), `wb-drill-${pid}-`))
  expect(await wb(['access', 'drill', '--workspace', 'demo', '--as-operator'])).toMatchObject({ status: 0 })
  expect(existsSync(copy)).toBe(false)
  expect(readdirSync(tmpdir()).filter(name => name.startsWith(`wb-drill-${process.pid}-`))).toEqual([])
})
