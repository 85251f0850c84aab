import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { runInTerminal, stripSequences } from '../commands/terminal.ts'
import { createReaderSandbox } from './reader-sandbox.ts'

const page = readFileSync('docs/evaluation.md', 'utf8')
/** Matches a block of commands, with the reason not to run it and its output if there are any. */
const block = /(<!-- not run: .*-->\n)?```sh\n([\s\S]*?)```\n(?:\n```\n([\s\S]*?)```\n)?/g

test('docs/evaluation.md: the commands print what the page shows, and its job passes', {
  timeout: 240_000,
}, async () => {
  const sandbox = await createReaderSandbox()
  sandbox.env.WB_SEMANTIC_SEARCH = 'on'
  const { env, folder: cwd } = sandbox
  const run = (commands: string) => {
    const { status, stderr } = spawnSync('bash', ['-euc', commands], { cwd, env, encoding: 'utf8' })
    expect(status, stderr).toBe(0)
  }
  let shown = 0
  for (const [, reason, commands, output] of page.matchAll(block)) {
    if (output === undefined) {
      if (reason === undefined) run(commands!)
      continue
    }
    shown++
    const args = commands!.trim().split(' ').slice(1)
    const { status, text } = await runInTerminal(sandbox, args, { cwd, cols: 100, colour: false })
    expect(stripSequences(text).replaceAll('\r', '').replace(/ +$/gm, '')).toContain(output)
    expect(status).toBe(output.includes('✗') ? 1 : 0)
  }
  expect(shown).toBeGreaterThanOrEqual(2)
  const [, workflow] = /<!-- eval: workflow -->\n```yaml\n([\s\S]*?)```/.exec(page)!
  const { jobs } = parse(workflow!) as { jobs: { quality: { steps: { run?: string }[] } } }
  const lines = jobs.quality.steps.flatMap(({ run: line }) => line ?? [])
  expect(lines.length).toBe(2)
  run('wb kb delete rules --yes')
  for (const line of lines) run(line)
})
