import { spawn } from '@lydell/node-pty'
import { describe, expect, test } from 'vitest'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

/** Starts a command in a terminal of 80 columns. */
function startInTerminal({ env, home }: Sandbox, args: string[], more: Record<string, string> = {}) {
  const child = spawn(process.execPath, [`${process.cwd()}/bin/run.js`, ...args], {
    cwd: home,
    cols: 80,
    rows: 30,
    env: { ...env, NO_COLOR: '', TERM: 'xterm-256color', ...more },
  })
  let screen = ''
  const waiting: { words: string; done: () => void }[] = []
  child.onData(text => {
    screen += text
    for (const { words, done } of waiting) if (screen.includes(words)) done()
  })
  const ended = new Promise<number>(done => child.onExit(({ exitCode }) => done(exitCode)))
  return {
    ended,
    type: (text: string) => child.write(text),
    end: () => process.kill(child.pid, 'SIGTERM'),
    /** Resolves when the text appears on the screen. */
    shows: (words: string) =>
      screen.includes(words) ? undefined : new Promise<void>(done => waiting.push({ words, done })),
    text: () => screen.replaceAll('\r\n', '\n').replace(/\x1b\[[\d;?]*[A-Za-z]/g, ''),
  }
}

describe('in a terminal', () => {
  test('prints a list as a table with dim headings and relative times, without IDs', async () => {
    const sandbox = createSandbox()
    await sandbox.wb(['kb', 'create', 'handbook'])
    const listed = await runInFakeTerminal(sandbox, ['kb', 'list'])
    expect(listed.status).toBe(0)
    expect(listed.text).toContain('\x1b[2m  name')
    expect(stripSequences(listed.text)).toMatch(
      /^ {2}name {6}documents {2}size {2}updated\n {2}handbook {10}0 {3}0 B {2}(now|\d+ s ago)\n$/,
    )
    const plain = await runInFakeTerminal(sandbox, ['kb', 'list'], { colour: false })
    expect(plain.status).toBe(0)
    expect(plain.text).not.toContain('\x1b')
  })

  test('prompts for a missing name, and rejects it as a usage error in CI', async () => {
    const sandbox = createSandbox()
    const prompted = startInTerminal(sandbox, ['kb', 'create'])
    await prompted.shows('NAME (')
    prompted.type('notes\r')
    expect(await prompted.ended).toBe(0)
    expect(prompted.text()).toContain('✓ created knowledge base notes')
    const inCi = { ...sandbox, env: { ...sandbox.env, CI: 'true' } }
    expect((await runInFakeTerminal(inCi, ['kb', 'create'])).status).toBe(2)
  })

  test('prompts for a question and a knowledge base', async () => {
    const sandbox = createSandbox()
    await sandbox.wb(['kb', 'create', 'first'])
    await sandbox.wb(['kb', 'create', 'second'])
    const { ended, type, shows, text } = startInTerminal(sandbox, ['kb', 'search'])
    await shows('What do you want to know?')
    type('anything\r')
    await shows('Which knowledge base')
    type('\x1b[B\x1b[B\r')
    expect(await ended).toBe(0)
    expect(text()).toContain('no results in second')
    const everywhere = startInTerminal(sandbox, ['kb', 'search', 'anything'])
    await everywhere.shows('all of them')
    everywhere.type('\r')
    expect(await everywhere.ended).toBe(0)
    expect(everywhere.text()).toContain('no results in 2 knowledge bases')
  })

  test('shows what will be deleted, and deletes it when the user types its name', async () => {
    const sandbox = createSandbox()
    await sandbox.wb(['kb', 'create', 'notes'])
    const mistyped = startInTerminal(sandbox, ['kb', 'delete', 'notes'])
    await mistyped.shows('to confirm')
    expect(mistyped.text()).toContain('This deletes knowledge base notes with 0 documents.')
    mistyped.type('note\r')
    expect(await mistyped.ended).toBe(2)
    expect((await sandbox.wb(['kb', 'list', '--json'])).stdout).toContain('notes')
    const typed = startInTerminal(sandbox, ['kb', 'delete', 'notes'])
    await typed.shows('to confirm')
    typed.type('notes\r')
    expect(await typed.ended).toBe(0)
    expect((await sandbox.wb(['kb', 'list', '--json'])).stdout).toBe('[]\n')
  })

  test('offers a list if there are several', async () => {
    const sandbox = createSandbox()
    await sandbox.wb(['kb', 'create', 'first'])
    await sandbox.wb(['kb', 'create', 'second'])
    const { ended, type, shows, text } = startInTerminal(sandbox, ['kb', 'show'])
    await shows('second')
    type('\x1b[B\r')
    expect(await ended).toBe(0)
    expect(text()).toMatch(/name +second\n/)
  })

  test('Ctrl-C and SIGTERM end a prompt with 130, and Ctrl-C ends a server with 0', async () => {
    const sandbox = createSandbox()
    const prompted = startInTerminal(sandbox, ['kb', 'create'])
    await prompted.shows('NAME (')
    prompted.type('\x03')
    expect(await prompted.ended).toBe(130)
    const ended = startInTerminal(sandbox, ['kb', 'create'])
    await ended.shows('NAME (')
    ended.end()
    expect([await ended.ended, ended.text()]).toEqual([130, expect.stringContaining('✗ interrupted\n')])
    const server = startInTerminal(sandbox, ['serve', '--port', '0'])
    await server.shows('in another terminal')
    expect(server.text()).toContain('anyone on this machine')
    server.type('\x03')
    expect(await server.ended).toBe(0)
  })

  test('strips control sequences in documents [security rule 16]', async () => {
    const sandbox = createSandbox()
    const name = 'a\x1b]0;owned\x07b\x1b[2Jc'
    await sandbox.wb(['api', 'POST', '/api/v1/workspaces', '-d', JSON.stringify({ name })])
    const { status, text } = await runInFakeTerminal(sandbox, ['workspaces', 'list'])
    expect(status).toBe(0)
    expect(text).toContain('abc')
    expect(text).not.toMatch(/owned|\x1b\]|\x1b\[2J/)
  })
})
