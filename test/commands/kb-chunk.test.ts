import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { createSandbox } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

const markdown = `# Keys\n\nCreate a key for each service. Rotate it every month.\n\n## Revoke\n\n${'A revoked key stops working at once. '.repeat(12)}\n\n## Table\n\n| Name | Role |\n| --- | --- |\n${'| Ann | administrator of the workspace |\n'.repeat(30)}`

function stage() {
  const sandbox = createSandbox()
  writeFileSync(join(sandbox.home, 'keys.md'), markdown)
  return { wb: (args: string[], options = {}) => sandbox.wb(args, { cwd: sandbox.home, ...options }) }
}

test('prints the chunks of a file to a pipe, and stores nothing', async () => {
  const { wb } = stage()
  const { stdout } = await wb(['kb', 'chunk', 'keys.md', '--compare', 'structure'])
  const rows = stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t'))
  expect(rows[0]!.slice(0, 4)).toEqual(['structure', '1', '0', '517'])
  expect(rows.map(cells => cells[6])).toEqual(['Keys', 'Keys > Table', 'Keys > Table'])
  expect(JSON.parse((await wb(['kb', 'list', '--json'])).stdout)).toEqual([])
})

test('names the available chunkers if one does not exist', async () => {
  const { wb } = stage()
  const { status, stderr } = await wb(['kb', 'chunk', 'keys.md', '--compare', 'structure,other'])
  expect(status).toBe(2)
  expect(stderr).toContain('There is no chunker "other". Available chunkers: passages,')
})

test('prints offsets and text as JSON', async () => {
  const { wb } = stage()
  const { stdout } = await wb(['kb', 'chunk', 'keys.md', '--json'])
  const { text, previews } = JSON.parse(stdout)
  expect(text).toBe(markdown)
  expect(previews).toMatchObject([{ name: 'passages', chunks: [{ start: 0, section: 'Keys' }, {}, {}] }])
})
