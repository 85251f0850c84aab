import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sandboxFactory } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000

const demo = sandboxFactory(async ({ wb, home }) => {
  const file = join(home, 'keys.md')
  writeFileSync(file, 'Revoke a key, and revoke its keys, to revoke a key.')
  await wb(['kb', 'create', 'handbook', '--semantic', 'off'])
  const { status, stderr } = await wb(['kb', 'ingest', 'handbook', file])
  expect(status, stderr).toBe(0)
})

test('wb kb insights shows what was searched for, and deletes it', { timeout }, async () => {
  const sandbox = await demo()
  const run = async (...words: string[]) => {
    const result = await sandbox.wb(['kb', ...words])
    expect(result.status, result.stderr).toBe(0)
    return result
  }
  await run('search', 'handbook', 'before')
  expect((await run('insights', 'handbook')).stderr).toContain('wb kb update handbook --query-log on')
  const updated = await run('update', 'handbook', '--query-log', 'on')
  expect(updated.stderr).toContain('searches are recorded now, and kept for 30 days')
  expect((await run('show', 'handbook')).stdout).toContain('query log\ton')
  const long = 'a question about apples that is much longer than a line of a terminal with eighty columns'
  for (const question of ['revoke a key', long, '"apples"', '\u001b[31mred'])
    await run('search', 'handbook', question)

  const words = ['kb', 'insights', 'handbook', '--since', '1h']
  const screen = stripSequences((await runInFakeTerminal(sandbox, words, { cols: 80 })).text)
  expect(screen).toMatch(/searches +4\r?\n/)
  expect(screen).toMatch(/day +searches {2}no good results/)
  expect(screen).toMatch(/without good results +searches {2}passages/)
  expect(screen).toMatch(/"apples" +1 +0/)
  expect(screen).toMatch(/slowest +time +mode +last/)
  expect(Math.max(...screen.split(/\r?\n/).map(({ length }) => length))).toBeLessThanOrEqual(80)
  expect((await run('insights', 'handbook')).stdout).toMatch(/^unanswered\t1\t\S+\t/)
  expect(JSON.parse((await run('insights', 'handbook', '--json')).stdout)).toMatchObject({
    queryLog: true,
    searches: 4,
  })

  await run('insights', 'handbook', '--clear', '--yes')
  expect(JSON.parse((await run('insights', 'handbook', '--json')).stdout)).toMatchObject({ searches: 0 })
})
