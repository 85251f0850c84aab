import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { jqFilter } from '../../src/cli/terminal/jq.ts'
import { Output } from '../../src/cli/terminal/output.ts'
import { FakeIo } from '../harness/fake-io.ts'
import { createSandbox } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

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
])('--jq %s prints the expected results', async (expression, results) => {
  expect((await jqFilter(expression, signals))(bases)).toEqual(results)
})

test.each([
  ['.[', 'syntax error, unexpected end of file at line 1, column 2'],
  ['', 'Top-level program not given (try ".")'],
  ['-h', 'h/0 is not defined at line 1, column 2'],
])('rejects the expression %j before there is input', async (expression, why) => {
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
])('%s: reports a jq runtime error in one line', async (expression, why) => {
  const filter = await jqFilter(expression, signals)
  const message = typeof why === 'string' ? `--jq: ${why}` : new RegExp(why.source.replace('^', '^--jq: '))
  expect(() => filter(bases)).toThrow(message)
})

test('rejects an expression that overflows jq, without other output', async () => {
  expect(await createSandbox().wb(['version', '--jq', 'def f:[f];f'])).toEqual({
    status: 2,
    stdout: '',
    stderr: "  ✗ --jq: the expression needs too much memory\n    wb kb list --jq '.[].name'\n",
  })
})

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s interrupts an endless expression',
  async signal => {
    const child = spawn(process.execPath, ['bin/run.js', 'version', '--jq', 'last(repeat(1))'], {
      env: createSandbox().env,
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    // Before jq runs, the first signal asks the command to stop, and the second one ends it.
    for (let attempt = 0; attempt < 2; attempt++) {
      await wait(1_000)
      child.kill(signal)
    }
    const [status, by] = await ended
    expect(by ?? status).toBe(signal)
  },
  8_000,
)

test('restores signal listeners after an expression', async () => {
  const listener = () => {}
  process.on('SIGTERM', listener)
  onTestFinished(() => void process.off('SIGTERM', listener))
  expect((await jqFilter('.', signals))(1)).toEqual([1])
  expect(process.listeners('SIGTERM')).toContain(listener)
})

test('processes a large response in bounded time', async () => {
  const many = Array.from({ length: 20_000 }, (_, id) => ({ id, text: 'some words of a passage' }))
  expect((await jqFilter('map(.id) | add', signals))(many)).toEqual([199_990_000])
}, 5_000)

test.each([
  [false, 'a\x1b[2Jb\n{"n":1}\n[1,2]\n7\nnull\n'],
  [true, 'ab\n{\n  "n": 1\n}\n[\n  1,\n  2\n]\n7\nnull\n'],
])('prints strings raw and other values as JSON; terminal: %s', async (isTTY, printed) => {
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

test('an invalid expression sends no request, and is reported as text or as a JSON object', async () => {
  const { wb } = createSandbox()
  const refused = await wb(['kb', 'create', 'handbook', '--jq', '.['])
  const why = '--jq: syntax error, unexpected end of file at line 1, column 2'
  const example = "wb kb list --jq '.[].name'"
  expect(refused).toEqual({ status: 2, stdout: '', stderr: `  ✗ ${why}\n    ${example}\n` })
  const asJson = await wb(['kb', 'create', 'handbook', '--json', '--jq', '.['])
  expect(JSON.parse(asJson.stderr)).toEqual({ error: { code: 'usage', message: why, hint: example } })
  expect((await wb(['workspaces', 'list', '--jq', 'length'])).stdout).toBe('0\n')
})

test('applies to lists, single objects, tokens, any route and server output', {
  timeout: 60_000,
}, async () => {
  const sandbox = createSandbox()
  const server = await sandbox.serve(['--jq', 'select(.event).url |= "told as \\(.)"'])
  expect(server.url).toMatch(/^told as http/)
  const printed = async (...args: string[]) => (await sandbox.wb(args)).stdout
  expect(await printed('kb', 'create', 'handbook', '--jq', '.name')).toBe('handbook\n')
  expect(await printed('kb', 'list', '--jq', '.[] | .name, .lexical')).toMatch(
    /^handbook\n\{"enabled":true,.*\}\n$/,
  )
  expect(await printed('keys', 'create', 'ci', '--jq', '.plaintext')).toMatch(/^wb_live_\w+\n$/)
  expect(await printed('api', 'GET', '/api/v1/workspaces', '--jq', '.items[].name')).toBe('default\n')
  expect(await printed('api', 'GET', '/api/v1/workspaces', '--pages', '--jq', 'length')).toBe('1\n')
  const refused = await sandbox.wb(['api', 'GET', '/api/v1/workspaces/nope', '--jq', '.name'])
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(await sandbox.wb(['api', 'GET', '/docs', '--jq', '.'])).toMatchObject({
    status: 2,
    stdout: '',
    stderr: '  ✗ The response is not JSON\n    leave out --jq\n',
  })
  const { text } = await runInFakeTerminal(sandbox, ['kb', 'list', '--jq', '.[].name'])
  expect(stripSequences(text)).toBe('handbook\n')
})
