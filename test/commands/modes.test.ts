import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { expect, test } from 'vitest'
import { inFakeTerminal, withoutSequences } from './terminal.ts'
import { type Place, place } from './wb.ts'

/** Two knowledge bases, whose lists and passages are wide. */
async function filled(): Promise<Place> {
  const here = place()
  const folder = join(here.home, 'papers')
  mkdirSync(folder)
  const text = 'The boundary layer on a flat plate grows with the distance from its edge.'
  writeFileSync(join(folder, 'plate.md'), `# Flow past a plate\n\n${text}\n`)
  await here.wb(['kb', 'ingest', 'papers', folder, '--create'])
  await here.wb(['kb', 'create', 'a_knowledge_base_whose_name_is_as_long_as_few'])
  return here
}

/** What a terminal was sent, its sequences readable; what differs from run to run left out. */
function readable(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll('\x1b', '␛')
    .replace(/\d+ (?:s|min) ago|\bnow\b/g, 'AGO')
    .replace(/[0-9a-f-]{36}/g, 'ID')
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
])('%j at %i columns, for a terminal and for COLUMNS', async (words, cols) => {
  const here = place()
  const { stdout } = await here.wb(words, { env: { COLUMNS: String(cols) } })
  const { text } = await inFakeTerminal(here, words, { cols, colour: false })
  expect(withoutSequences(text)).toBe(stdout)
  expect(stdout.split('\n').filter(line => line.length > cols)).toEqual([])
  await expect(stdout).toMatchFileSnapshot(`modes/${words.join('-').replace('--', '')}-${cols}.txt`)
})

test('help in a pager has the width of the terminal', async () => {
  const here = place()
  const words = ['kb', 'ingest', '--help']
  const { stdout } = await here.wb(words, { env: { COLUMNS: '60' } })
  const line = `"${process.execPath}" "${resolve('bin/run.js')}" ${words.join(' ')} | cat`
  const terminal = spawn('/bin/sh', ['-c', line], { cols: 60, env: here.env })
  let text = ''
  terminal.onData(data => {
    text += data
  })
  await new Promise<void>(done => terminal.onExit(() => done()))
  expect(text.replaceAll('\r\n', '\n')).toBe(stdout)
})

test('one command line as a person meets it, in a pipe, in CI, on 40 columns, without colours and without UTF-8', async () => {
  const here = await filled()
  for (const line of lines) {
    const said: string[] = []
    for (const [name, { cols, env = {} }] of terminals) {
      const { status, text } = await inFakeTerminal({ ...here, env: { ...here.env, ...env } }, line, {
        cols,
        colour: !env.NO_COLOR,
      })
      said.push(`# ${name}, ended with ${status}\n${readable(text)}`)
    }
    for (const [name, env] of [
      ['in a pipe', {}],
      ['in CI', { CI: 'true' }],
    ] as const) {
      const { status, stdout, stderr } = await here.wb(line, { env })
      said.push(`# ${name}, ended with ${status}\n${readable(stdout)}# stderr\n${readable(stderr)}`)
    }
    await expect(said.join('\n')).toMatchFileSnapshot(`modes/${line.join('-').replaceAll(' ', '-')}.txt`)
  }
}, 60_000)
