import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { expect, onTestFinished, test } from 'vitest'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { stripSequences } from './terminal.ts'

const timeout = 60_000

/** Starts a playground in a terminal. `shows` waits for text after the text that earlier calls matched. */
function startPlayground({ env, home }: Sandbox, args: string[], more: Record<string, string> = {}) {
  const child = spawn(process.execPath, [`${process.cwd()}/bin/run.js`, 'playground', ...args], {
    cols: 100,
    rows: 24,
    cwd: home,
    env: { ...env, TERM: 'xterm-256color', ...more },
  })
  let screen = ''
  let read = 0
  let wake = () => {}
  child.onData(text => {
    screen += text
    wake()
  })
  onTestFinished(() => child.kill())
  return {
    ended: new Promise<number>(done => child.onExit(({ exitCode }) => done(exitCode))),
    type: (text: string) => child.write(text),
    resize: (cols: number, rows: number) => child.resize(cols, rows),
    screen: () => screen,
    async shows(words: string | RegExp) {
      const found = () => {
        const text = stripSequences(screen.slice(read))
        return typeof words === 'string' ? text.includes(words) : words.test(text)
      }
      while (!found())
        await new Promise<void>(done => {
          wake = done
        })
      read = screen.length
    },
  }
}

function createSandboxWithDocuments(): Sandbox {
  const sandbox = createSandbox()
  mkdirSync(join(sandbox.home, 'shop'))
  writeFileSync(join(sandbox.home, 'shop', 'refunds.md'), '# Refunds\n\nA refund is paid within ten days.\n')
  writeFileSync(
    join(sandbox.home, 'shop', 'whales.md'),
    '# Whales\n\nWhales sing \x1b]0;owned\x07of ten seas.\n',
  )
  return sandbox
}

/** Adds a clipboard program to the PATH that writes the copied text to a file. */
function addClipboardProgram({ home, env }: Sandbox): string {
  const bin = join(home, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'pbcopy'), `#!/bin/sh\ncat > ${home}/copied\n`)
  chmodSync(join(bin, 'pbcopy'), 0o755)
  return `${bin}:${env.PATH}`
}

test('a session: choose, search, open, change the ranking, copy, resize and exit', { timeout }, async () => {
  const sandbox = createSandboxWithDocuments()
  const { wb, home } = sandbox
  const { url, process: server } = await sandbox.spawnServe()
  await wb(['kb', 'create', 'empty'])
  await wb(['kb', 'ingest', 'shop', 'shop', '--create'])

  const play = startPlayground(sandbox, [], { PATH: addClipboardProgram(sandbox) })
  await play.shows('type to filter the list')
  play.type('sho\r')
  await play.shows('ask shop')
  play.type('whales of the seas')
  await play.shows(/› {2}1 Whales[\s\S]*wb kb search shop "whales of the seas"/)
  play.type('\x15when are refunds paid')
  await play.shows(/2 hits[\s\S]*› {2}1 Refunds +▮▮▮▮▮/)
  play.type('\r')
  await play.shows('enter closes')
  play.type('\x1b')
  await play.shows('esc question')
  play.type('h')
  await play.shows('search shop "when are refunds paid" --mode lexical')
  play.type('cc')
  await play.shows('copied: curl')
  expect(readFileSync(join(home, 'copied'), 'utf8')).toContain(`${url}/api/v1/workspaces/`)
  play.resize(40, 20)
  await play.shows('h mode lexical')
  play.resize(100, 24)
  await play.shows('│ settings')
  play.type('\x1b')
  await play.shows('esc settings')
  server.kill('SIGKILL')
  play.type(' back')
  await play.shows('the runtime is unreachable, retrying; the question is kept')
  play.type('\x03')
  expect(await play.ended).toBe(0)
  const [, remaining = ''] = play.screen().split('\x1b[?1049l')
  expect(stripSequences(remaining).trim()).toBe(
    'wb kb search shop "when are refunds paid back" --mode lexical',
  )
  expect(play.screen()).not.toMatch(/owned|# Refunds/)
  for (const sequence of ['\x1b[?1049h', '\x1b[?2004h']) expect(play.screen()).toContain(sequence)
  expect(play.screen()).toContain('\x1b[?2004l')
  expect(remaining).toContain('\x1b[?25h')
})

test('works in an ASCII terminal, without colors, and without a running server', { timeout }, async () => {
  const sandbox = createSandboxWithDocuments()
  await sandbox.wb(['kb', 'ingest', 'shop', 'shop', '--create'])
  writeFileSync(join(sandbox.dataDir, 'workbase.yaml'), 'version: 1\nruntime: { port: 9123 }\n')
  const play = startPlayground(sandbox, ['shop', 'refunds'], {
    LC_ALL: 'C',
    PATH: addClipboardProgram(sandbox),
  })
  await play.shows(/\+-{98}\+\r?\n\| refunds[\s\S]*> {2}1 Refunds +#####/)
  expect(play.screen()).not.toMatch(/[^\x00-\x7f]|\x1b\[[0-9;]*m/)
  play.type('\x1b')
  await play.shows('esc question')
  play.type('cc')
  await play.shows('copied: curl')
  // The default port of `wb serve`, on which nothing listens.
  expect(readFileSync(join(sandbox.home, 'copied'), 'utf8')).toContain(
    'http://127.0.0.1:9123/api/v1/workspaces/',
  )
  play.type('\x03')
  expect(await play.ended).toBe(0)
})

test('stores judgments in a file that wb eval run reads, and shows them in the next session', {
  timeout,
}, async () => {
  const sandbox = createSandboxWithDocuments()
  await sandbox.wb(['kb', 'ingest', 'shop', 'shop', '--create'])
  const play = startPlayground(sandbox, ['shop', 'refunds'])
  await play.shows(/› {2}1 Refunds/)
  play.type('\x1b')
  await play.shows('esc question')
  play.type('4')
  await play.shows('grade 4, saved to shop.judgments.jsonl')
  play.type('\x03')
  expect(await play.ended).toBe(0)
  const { stdout } = await sandbox.wb(['eval', 'run', 'shop.judgments.jsonl', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ questions: [{ question: 'refunds', rank: 1 }] })
  const next = startPlayground(sandbox, ['shop', 'refunds'])
  await next.shows(/› {2}1 Refunds +grade 4/)
  next.type('\x03')
  expect(await next.ended).toBe(0)
})

test('suggests commands for a pipe if there is no terminal', { timeout }, async () => {
  const { wb } = createSandbox()
  const ended = await wb(['playground'])
  expect(ended).toMatchObject({ status: 2, stdout: '' })
  expect(ended.stderr).toContain('wb kb search NAME "…"')
})

test('prints a ranking command that works, and rejects invalid ranking options', { timeout }, async () => {
  const { wb } = createSandboxWithDocuments()
  await wb(['kb', 'ingest', 'shop', 'shop', '--create'])
  const search = (...flags: string[]) =>
    wb(['kb', 'search', 'shop', 'refunds', '--jq', '.[0].score', ...flags])
  const scores = await Promise.all([
    search('--lexical-weight', '0.25'),
    search('--lexical-weight', '1', '--rerank'),
  ])
  expect(new Set(scores.map(({ stdout }) => stdout)).size).toBe(2)
  const refused = await Promise.all([
    search('--lexical-weight', '2'),
    search('--lexical-weight', '0.5', '--mode', 'vector'),
  ])
  expect(refused).toMatchObject([{ status: 2 }, { status: 2 }])
  expect(refused[0]!.stderr).toContain('✗ --lexical-weight takes a number from 0 to 1, not "2"\n')
})
