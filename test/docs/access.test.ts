import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runInTerminal, stripSequences } from '../commands/terminal.ts'
import { createReaderSandbox } from './reader-sandbox.ts'

/** Matches a block of commands, and the block of its output if there is one. */
const block = /```sh\n([\s\S]*?)```\n(?:\n```\n([\s\S]*?)```\n)?/g

/** Replaces what differs in each run: IDs, times, the version, and the number of pages of the audit. */
function normalize(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/Workbase [\d.]+/g, 'Workbase VERSION')
    .replaceAll(/[\d,]+ requests/g, 'N requests')
}

test('docs/access.md: the commands of the worked example print what the page shows', {
  timeout: 120_000,
}, async () => {
  const [, example] = readFileSync('docs/access.md', 'utf8').split('\n## A worked example\n')
  const blocks = [...example!.matchAll(block)]
  expect(blocks.filter(([, , output]) => output !== undefined).length).toBeGreaterThanOrEqual(6)
  const sandbox = await createReaderSandbox()
  const { env, folder: cwd } = sandbox
  for (const [, commands, output] of blocks) {
    if (output === undefined) {
      const { status, stderr } = spawnSync('bash', ['-euc', commands!], { cwd, env, encoding: 'utf8' })
      expect(status, stderr).toBe(0)
      continue
    }
    const args = commands!.trim().split(' ').slice(1)
    const { status, text } = await runInTerminal(sandbox, args, { cwd, cols: 100, colour: false })
    const printed = normalize(stripSequences(text).replaceAll('\r', ''))
    expect(status, printed).toBe(0)
    // An ellipsis replaces any number of lines.
    let from = 0
    for (const part of normalize(output).split('  …\n')) {
      const at = printed.indexOf(part, from)
      expect(at, `${commands}prints\n${printed}instead of\n${part}`).toBeGreaterThanOrEqual(0)
      from = at + part.length
    }
  }
})
