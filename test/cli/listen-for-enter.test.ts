import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { listenForEnter } from '../../src/cli/sign-in/listen-for-enter.ts'

test('reports Enter and Ctrl-C, and returns the terminal to its earlier mode', () => {
  const modes: boolean[] = []
  const stdin = Object.assign(new PassThrough(), {
    setRawMode: (mode: boolean) => void modes.push(mode),
  })
  const events: string[] = []
  const signals = { raise: (signal: string) => void events.push(signal) }
  type Input = Parameters<typeof listenForEnter>[0]
  const stop = listenForEnter({ stdin, signals } as unknown as Input, () => events.push('enter'))
  for (const typed of ['x', '\r', '\u0003']) stdin.emit('data', typed)
  stop()
  stdin.emit('data', '\r')
  expect(events).toEqual(['enter', 'SIGINT'])
  expect(modes).toEqual([true, false])
})
