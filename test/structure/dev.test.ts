import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { place } from '../commands/wb.ts'

test('bin/dev.js runs a command from source', () => {
  const here = place()
  const { status, stderr } = spawnSync(resolve('bin/dev.js'), ['kb', 'list'], {
    env: { ...here.env, DEBUG: 'oclif:config:workbase' },
    encoding: 'utf8',
  })
  expect(stderr).toMatch(/\(import\) .+\/commands\/kb\/list\.ts\n/)
  // Both the command and what reports its error are from source, so the error is recognized.
  expect(stderr).toContain('(workspace_not_found)')
  expect(status).toBe(4)
})
