import { expect, test } from 'vitest'
import { TerminalSession } from '../../../src/tui/parts/terminal-session.ts'
import { FakeIo } from '../../harness/fake-io.ts'

function openSession() {
  const { stdin, stdout, signals } = new FakeIo()
  const isRaw = { value: false }
  const setRawMode = (value: boolean) => {
    isRaw.value = value
    return stdin
  }
  const session = new TerminalSession(
    { stdin: Object.assign(stdin, { setRawMode }), stdout, signals },
    { hasColors: false, signal: new AbortController().signal, onResize() {}, onEnd() {} },
  )
  session.open()
  return { session, stdout, signals, isRaw }
}

test('a process that exits early restores the screen, the cursor and paste mode', () => {
  const { session, stdout, signals } = openSession()
  session.showAlternateScreen(true)
  const before = stdout.text.length
  for (const listener of signals.exits) listener()
  expect(stdout.text.slice(before)).toBe('\x1b[?2004l\x1b[?1049l\x1b[?25h')
})

test('a closed session restores the terminal once and does nothing at exit', () => {
  const { session, stdout, signals, isRaw } = openSession()
  expect(isRaw.value).toBe(true)
  session.close()
  expect(stdout.text.endsWith('\x1b[?2004l\x1b[?25h')).toBe(true)
  expect(isRaw.value).toBe(false)
  expect(signals.exits.size).toBe(0)
})
