import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { terminalClipboard } from '../../src/cli/environment.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { clipboardSequence, findClipboard } from '../../src/cli/terminal/clipboard.ts'
import { FakeIo } from '../harness/fake-io.ts'

const hostile = 'a \x1b]0;owned\x07 b \u00fc'
const encoded = Buffer.from(hostile).toString('base64')

/** Creates a PATH whose only clipboard program exits with the given status. */
function clipboardEndsWith(status: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'wb-clipboard-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'pbcopy'), `#!/bin/sh\nexit ${status}\n`)
  chmodSync(join(folder, 'pbcopy'), 0o755)
  return folder
}

describe('the clipboard sequence of a terminal', () => {
  test('encodes the text as Base64, so that control sequences in it cannot reach the terminal', () => {
    expect(clipboardSequence(hostile, false)).toBe(`\x1b]52;c;${encoded}\x07`)
  })

  test('is wrapped for tmux, which passes it to the outer terminal', () => {
    const sequence = `]52;c;${encoded}\x07`
    expect(clipboardSequence(hostile, true)).toBe(`\x1b${sequence}\x1bPtmux;\x1b\x1b${sequence}\x1b\\`)
  })

  test('is rejected for a text that exceeds the terminal limit', () => {
    expect(clipboardSequence('x'.repeat(75_000), false)).toHaveLength(100_000 + '\x1b]52;c;\x07'.length)
    expect(() => clipboardSequence('ü'.repeat(37_501), false)).toThrow(UsageError)
  })

  test.each([
    [{}, undefined],
    [{ TERM: 'dumb' }, undefined],
    [{ TERM: 'linux' }, undefined],
    [{ TERM: 'xterm-256color' }, 'terminal'],
    [{ TERM: 'tmux-256color', TMUX: '/tmp/tmux-0/default,1,0' }, 'tmux'],
  ])('with %j is sent to: %s', (variables, reached) => {
    expect(terminalClipboard(variables)).toBe(reached)
  })
})

describe('copying text', () => {
  test.each([
    ['uses the clipboard program', 0, 'xterm', 'program', []],
    ['uses the terminal if the program fails', 1, 'xterm', 'terminal', [`\x1b]52;c;${encoded}\x07`]],
  ])('%s', async (_how, status, TERM, by, sent) => {
    const written: string[] = []
    const copy = findClipboard(
      new FakeIo({ env: { PATH: clipboardEndsWith(status), TERM } }),
      text => void written.push(text),
    )!
    expect(await copy(hostile)).toBe(by)
    expect(written).toEqual(sent)
  })

  test('fails if the program fails and the terminal has no clipboard', async () => {
    const copy = findClipboard(new FakeIo({ env: { PATH: clipboardEndsWith(1), TERM: 'dumb' } }), () => {})!
    await expect(copy(hostile)).rejects.toThrow('pbcopy ended with status 1')
  })

  test('is not available without a program and a terminal clipboard', () => {
    expect(findClipboard(new FakeIo({ env: { TERM: 'dumb' } }), () => {})).toBeUndefined()
  })
})
