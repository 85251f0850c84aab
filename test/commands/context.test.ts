import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000

describe.each(['in process', 'with a server'])('wb kb context, %s', way => {
  test('describes folders, embeds their documents again, and lists and removes descriptions', {
    timeout,
  }, async () => {
    const sandbox = createSandbox()
    if (way === 'with a server') await sandbox.serve()
    const docs = join(sandbox.home, 'docs')
    mkdirSync(join(docs, 'guides'), { recursive: true })
    writeFileSync(join(docs, 'guides', 'keys.md'), 'Rotate keys.')
    writeFileSync(join(docs, 'roles.md'), 'Roles have rights.')
    expect(await sandbox.wb(['kb', 'ingest', 'handbook', docs, '--create'])).toMatchObject({ status: 0 })
    const context = (...args: string[]) => sandbox.wb(['kb', 'context', 'handbook', ...args])
    expect(await context()).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('no described folders in handbook yet'),
    })
    const { stdout } = await context('guides/', 'for administrators', '--json')
    expect(JSON.parse(stdout)).toEqual({
      items: [{ path: 'guides', description: 'for administrators' }],
      documents: { rechunked: 1, unchanged: 1, kept: 0 },
    })
    const screen = await runInFakeTerminal(sandbox, ['kb', 'context', 'handbook', '.', 'our handbook'])
    expect(stripSequences(screen.text)).toMatch(
      /✓ described all files in handbook[\s\S]*documents embedded again: 1/,
    )
    expect(await context()).toMatchObject({
      status: 0,
      stdout: '.\tour handbook\nguides\tfor administrators\n',
    })
    const started = await context('guides', '--remove', '--async')
    expect(started).toMatchObject({ status: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) })
    expect(await sandbox.wb(['jobs', 'watch', started.stdout.trim()])).toMatchObject({ status: 0 })
    expect(await context('guides', '--remove')).toMatchObject({
      status: 4,
      stderr: expect.stringContaining("Folder 'guides' has no description"),
    })
    expect(await context('guides')).toMatchObject({ status: 2 })
    const stored = await context('guides', 'for all', '--no-reindex')
    expect(stored).toMatchObject({ status: 0, stderr: expect.stringContaining('wb kb reindex handbook') })
  })
})
