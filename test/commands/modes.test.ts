import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { expect, test } from 'vitest'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

/** Creates two knowledge bases with long names and passages. */
async function sandboxWithBases(): Promise<Sandbox> {
  const sandbox = createSandbox()
  const folder = join(sandbox.home, 'papers')
  mkdirSync(folder)
  const text = 'The boundary layer on a flat plate grows with the distance from its edge.'
  writeFileSync(join(folder, 'plate.md'), `# Flow past a plate\n\n${text}\n`)
  await sandbox.wb(['kb', 'ingest', 'papers', folder, '--create'])
  await sandbox.wb(['kb', 'create', 'a_knowledge_base_whose_name_is_as_long_as_few'])
  return sandbox
}

/** Returns terminal output with readable control sequences, and placeholders for values that change between runs. */
function readableOutput(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll('\x1b', '␛')
    .replace(/\d+ (?:s|min) ago|\bnow\b/g, 'AGO')
    .replace(/[0-9a-f-]{36}/g, 'ID')
    .replace(/file:\/\/\S*(?=\/papers\/)/g, 'file://HOME')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/request [0-9A-Z]{26}/g, 'request REQUEST')
    .replace(/ +\n/g, '\n')
}

const lines: string[][] = [
  ['kb', 'list'],
  ['kb', 'search', 'papers', 'boundary layer'],
  ['kb', 'show', 'paper'],
]
const terminals: [string, { cols?: number; env?: Record<string, string> }][] = [
  ['for a person', {}],
  ['on 40 columns', { cols: 40 }],
  ['with NO_COLOR', { env: { NO_COLOR: '1' } }],
  ['without UTF-8', { env: { LC_ALL: 'C' } }],
]

test.each([
  [['--help'], 40],
  [['--help'], 80],
  [['login', '--help'], 40],
  [['kb', 'ingest', '--help'], 60],
  [['login', '--help'], 80],
])('the help of %j has %i columns, from a terminal and from COLUMNS', async (words, cols) => {
  const sandbox = createSandbox()
  const { stdout } = await sandbox.wb(words, { env: { COLUMNS: String(cols) } })
  const { text } = await runInFakeTerminal(sandbox, words, { cols, colour: false })
  expect(stripSequences(text)).toBe(stdout)
  expect(stdout.split('\n').filter(line => line.length > cols)).toEqual([])
  await expect(stdout).toMatchFileSnapshot(`modes/${words.join('-').replace('--', '')}-${cols}.txt`)
})

test('help in a pager has the width of the terminal', async () => {
  const sandbox = createSandbox()
  const words = ['kb', 'ingest', '--help']
  const { stdout } = await sandbox.wb(words, { env: { COLUMNS: '60' } })
  const line = `"${process.execPath}" "${resolve('bin/run.js')}" ${words.join(' ')} | cat`
  const terminal = spawn('/bin/sh', ['-c', line], { cols: 60, env: sandbox.env })
  let text = ''
  terminal.onData(data => {
    text += data
  })
  await new Promise<void>(done => terminal.onExit(() => done()))
  expect(text.replaceAll('\r\n', '\n')).toBe(stdout)
})

test('prints a command in a terminal, in a pipe, in CI, with 40 columns, without colors and without UTF-8', async () => {
  const sandbox = await sandboxWithBases()
  for (const line of lines) {
    const outputs: string[] = []
    for (const [name, { cols, env = {} }] of terminals) {
      const { status, text } = await runInFakeTerminal(
        { ...sandbox, env: { ...sandbox.env, ...env } },
        line,
        {
          cols,
          colour: !env.NO_COLOR,
        },
      )
      outputs.push(`# ${name}, ended with ${status}\n${readableOutput(text)}`)
    }
    for (const [name, env] of [
      ['in a pipe', {}],
      ['in CI', { CI: 'true' }],
    ] as const) {
      const { status, stdout, stderr } = await sandbox.wb(line, { env })
      outputs.push(
        `# ${name}, ended with ${status}\n${readableOutput(stdout)}# stderr\n${readableOutput(stderr)}`,
      )
    }
    await expect(outputs.join('\n')).toMatchFileSnapshot(`modes/${line.join('-').replaceAll(' ', '-')}.txt`)
  }
}, 60_000)
