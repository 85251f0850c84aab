import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { terminationSignals } from '../../src/cli/io.ts'
import { withDefaultSignals } from '../../src/cli/node-io.ts'

/** Listens to every signal that ends a process, until the test ends. */
function listenToSignals(): () => void {
  const listener = () => {}
  for (const name of terminationSignals) process.on(name, listener)
  onTestFinished(() => {
    for (const name of terminationSignals) process.off(name, listener)
  })
  return listener
}

test('removes signal listeners during blocking work, and restores them afterwards', () => {
  const listener = listenToSignals()
  const counts = withDefaultSignals(() => terminationSignals.map(name => process.listenerCount(name)))
  expect(counts).toEqual([0, 0, 0])
  for (const name of terminationSignals) expect(process.listeners(name)).toContain(listener)
})

test('restores listeners after work that fails', () => {
  const listener = listenToSignals()
  const fail = () =>
    withDefaultSignals(() => {
      throw new Error('no pipe')
    })
  expect(fail).toThrow('no pipe')
  for (const name of terminationSignals) expect(process.listeners(name)).toContain(listener)
})

test('a listener for one signal receives only that signal', () => {
  let received = 0
  const listener = () => {
    received++
  }
  process.once('SIGHUP', listener)
  onTestFinished(() => void process.off('SIGHUP', listener))
  withDefaultSignals(() => {})
  process.emit('SIGHUP')
  expect(process.listeners('SIGHUP')).not.toContain(listener)
  expect(received).toBe(1)
})

test.each(terminationSignals)('%s ends a process whose thread is blocked', async name => {
  const source = `
    import { withDefaultSignals } from ${JSON.stringify(resolve('src/cli/node-io.ts'))}
    process.on('${name}', () => {})
    withDefaultSignals(() => {
      console.log('blocked')
      for (;;);
    })`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  child.kill(name)
  expect(await ended).toEqual([null, name])
})
