import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { jqFilter } from '../../src/cli/terminal/jq.ts'
import { Output } from '../../src/cli/terminal/output.ts'
import { FakeIo } from '../harness/fake-io.ts'
import { inFakeTerminal, withoutSequences } from './terminal.ts'
import { place } from './wb.ts'

const { signals } = new FakeIo()
const bases = [{ name: 'hand book', chunks: 3 }, { name: 'papers' }]

test.each([
  ['.[].name', ['hand book', 'papers']],
  ['length', [2]],
  ['.[] | select(.chunks > 9)', []],
  ['map({name})[0]', [{ name: 'hand book' }]],
  ['.[0].name | ., "a\nb"', ['hand book', 'a\nb']],
  ['-.[0].chunks', [-3]],
  ['$ENV.HOME', ['/home/web_user']],
])('%s', async (expression, made) => {
  expect((await jqFilter(expression, signals))(bases)).toEqual(made)
})

test.each([
  ['.[', 'syntax error, unexpected end of file at line 1, column 2'],
  ['', 'Top-level program not given (try ".")'],
  ['-h', 'h/0 is not defined at line 1, column 2'],
])('the expression %j is refused before there is a value', async (expression, why) => {
  await expect(jqFilter(expression, signals)).rejects.toMatchObject({
    name: 'UsageError',
    message: `--jq: ${why}`,
  })
})

test.each([
  ['.name', 'Cannot index array with string ("name")'],
  ['.[0], error("no\nmore")', 'no'],
  ['error', /^\(not a string\): \[\{"name":"hand book".*/],
  ['"x" * 300 | halt_error', /^x{199}…$/],
])('%s: jq says in one line why it is not for a value', async (expression, why) => {
  const filter = await jqFilter(expression, signals)
  const said = typeof why === 'string' ? `--jq: ${why}` : new RegExp(why.source.replace('^', '^--jq: '))
  expect(() => filter(bases)).toThrow(said)
})

test('an expression that overflows jq is refused, and nothing else is said', async () => {
  expect(await place().wb(['version', '--jq', 'def f:[f];f'])).toEqual({
    status: 2,
    stdout: '',
    stderr: "  ✗ --jq: the expression needs too much memory\n    wb kb list --jq '.[].name'\n",
  })
})

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends an expression that never does',
  async signal => {
    const child = spawn(process.execPath, ['bin/run.js', 'version', '--jq', 'last(repeat(1))'], {
      env: place().env,
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    // Before jq runs, a signal asks the command to stop; the second ends it.
    for (let asked = 0; asked < 2; asked++) {
      await wait(1_000)
      child.kill(signal)
    }
    const [status, by] = await ended
    expect(by ?? status).toBe(signal)
  },
  8_000,
)

test('who listens to signals does so after an expression too', async () => {
  const listener = () => {}
  process.on('SIGTERM', listener)
  onTestFinished(() => void process.off('SIGTERM', listener))
  expect((await jqFilter('.', signals))(1)).toEqual([1])
  expect(process.listeners('SIGTERM')).toContain(listener)
})

test('a large answer takes no longer than it must', async () => {
  const many = Array.from({ length: 20_000 }, (_, id) => ({ id, text: 'some words of a passage' }))
  expect((await jqFilter('map(.id) | add', signals))(many)).toEqual([199_990_000])
}, 5_000)

test.each([
  [false, 'a\x1b[2Jb\n{"n":1}\n[1,2]\n7\nnull\n'],
  [true, 'ab\n{\n  "n": 1\n}\n[\n  1,\n  2\n]\n7\nnull\n'],
])('strings are printed as they are, all else as JSON; in a terminal: %s', async (isTTY, printed) => {
  let text = ''
  const stdout = { isTTY, write: (part: string) => (text += part) }
  const options = { stdout, stderr: stdout, json: false, quiet: false, useColor: false, now: () => 0 }
  const output = new Output({ ...options, filter: await jqFilter('.[]', signals) })
  output.value(['a\x1b[2Jb', { n: 1 }, [1, 2], 7, null])
  expect(text).toBe(printed)
  text = ''
  output.row({ n: { deep: 1 }, m: 'x' }, {})
  expect(text).toBe('{"deep":1}\nx\n')
})

test('a wrong expression does nothing, is told to a person in lines and to a program as an object', async () => {
  const { wb } = place()
  const refused = await wb(['kb', 'create', 'handbook', '--jq', '.['])
  const why = '--jq: syntax error, unexpected end of file at line 1, column 2'
  const example = "wb kb list --jq '.[].name'"
  expect(refused).toEqual({ status: 2, stdout: '', stderr: `  ✗ ${why}\n    ${example}\n` })
  const asJson = await wb(['kb', 'create', 'handbook', '--json', '--jq', '.['])
  expect(JSON.parse(asJson.stderr)).toEqual({ error: { code: 'usage', message: why, hint: example } })
  expect((await wb(['workspaces', 'list', '--jq', 'length'])).stdout).toBe('0\n')
})

test('lists, single objects, tokens, any route and what a server says go through it', {
  timeout: 60_000,
}, async () => {
  const here = place()
  const server = await here.serve(['--jq', 'select(.event).url |= "told as \\(.)"'])
  expect(server.url).toMatch(/^told as http/)
  const printed = async (...args: string[]) => (await here.wb(args)).stdout
  expect(await printed('kb', 'create', 'handbook', '--jq', '.name')).toBe('handbook\n')
  expect(await printed('kb', 'list', '--jq', '.[] | .name, .lexical')).toMatch(
    /^handbook\n\{"enabled":true,.*\}\n$/,
  )
  expect(await printed('keys', 'create', 'ci', '--jq', '.plaintext')).toMatch(/^wb_live_\w+\n$/)
  expect(await printed('api', 'GET', '/api/v1/workspaces', '--jq', '.items[].name')).toBe('default\n')
  expect(await printed('api', 'GET', '/api/v1/workspaces', '--pages', '--jq', 'length')).toBe('1\n')
  const refused = await here.wb(['api', 'GET', '/api/v1/workspaces/nope', '--jq', '.name'])
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(await here.wb(['api', 'GET', '/docs', '--jq', '.'])).toMatchObject({
    status: 2,
    stdout: '',
    stderr: '  ✗ The response is not JSON\n    leave out --jq\n',
  })
  const { text } = await inFakeTerminal(here, ['kb', 'list', '--jq', '.[].name'])
  expect(withoutSequences(text)).toBe('handbook\n')
})
