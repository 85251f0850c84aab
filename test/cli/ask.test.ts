import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { Io } from '../../src/cli/io.ts'
import { ask, choose } from '../../src/cli/terminal/ask.ts'
import { stripSequences } from '../commands/terminal.ts'

const { signal } = new AbortController()
const long = 'an answer that is wider than the terminal is truncated'

/**
 * Returns streams of a terminal of 30 columns, and types `answer` after the prompt contains `text`. The library starts
 * to read after it has printed the prompt.
 */
function terminal(text: string, answer: string) {
  const stdin = new PassThrough()
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 30 })
  let shown = ''
  stderr.on('data', data => {
    const isShown = shown.includes(text)
    shown += stripSequences(String(data))
    if (!isShown && shown.includes(text)) setImmediate(() => stdin.write(answer))
  })
  return { io: { stdin, stderr } as unknown as Pick<Io, 'stdin' | 'stderr'>, shown: () => shown }
}

test('wraps a question between words', async () => {
  const { io, shown } = terminal('width?', 'yes\r')
  expect(await ask(io, 'Which question is wider than this width?', signal)).toBe('yes')
  expect(shown()).toContain('? Which question is wider\n  than this width?')
})

test('truncates choices to the width of the terminal', async () => {
  const { io, shown } = terminal('select', '\r')
  expect(await choose(io, 'Which?', [{ id: '1', name: long }], signal)).toBe('1')
  expect(shown()).toContain('❯ an answer that is wider th…\n')
  expect(shown()).toContain('✔ Which? an answer that is w…\n')
})
