import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { createSandbox } from '../commands/sandbox.ts'

test('bin/dev.js runs a command from source', () => {
  const here = createSandbox()
  const { status, stderr } = spawnSync(resolve('bin/dev.js'), ['kb', 'list'], {
    env: { ...here.env, DEBUG: 'oclif:config:workbase' },
    encoding: 'utf8',
  })
  expect(stderr).toMatch(/\(import\) .+\/commands\/kb\/list\.ts\n/)
  // The command and the code that reports its error are both from source, so the error is recognized.
  expect(stderr).toContain('(workspace_not_found)')
  expect(status).toBe(4)
})
