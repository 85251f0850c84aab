import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { sourceAddress } from '../../src/cli/passages/source-address.ts'
import { pdf } from '../formats/files.ts'
import { createSandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

test('the location of a passage is a link to its file, at its page', async () => {
  const sandbox = createSandbox()
  const folder = join(sandbox.home, 'docs')
  mkdirSync(folder)
  const filler = 'Every member of the team takes vacation in summer or in winter. '.repeat(30)
  writeFileSync(
    join(folder, 'handbook.pdf'),
    await pdf([[[12, filler]], [[12, `${filler}Revoke a lost key at once.`]]]),
  )
  await sandbox.wb(['workspaces', 'create', 'w'])
  await sandbox.wb(['kb', 'ingest', 'handbook', 'docs', '--create'], { cwd: sandbox.home })

  const link = `\x1b]8;;${pathToFileURL(join(folder, 'handbook.pdf'))}#page=2\x1b\\`
  for (const args of [
    ['kb', 'search', 'handbook', 'revoke a key'],
    ['documents', 'show', '1'],
  ]) {
    const { text } = await runInFakeTerminal(sandbox, args, { cwd: folder })
    expect(text).toContain(link)
    expect(stripSequences(text)).toContain('handbook.pdf · page 2')
  }
})

test.each([
  ['../handbook.pdf', undefined],
  ['/etc/passwd', undefined],
  ['missing.pdf', undefined],
  ['.', undefined],
  ['x'.repeat(300), undefined],
  ['a\0b', undefined],
  ['javascript:alert(1)', undefined],
  ['https://example.com/a\x1b b', 'https://example.com/a%1B%20b'],
])('the address of %j is %s', (sourceFilename, address) => {
  const document = { sourceFilename } as Parameters<typeof sourceAddress>[0]['document']
  expect(sourceAddress({ document }, [import.meta.dirname])).toBe(address)
})
