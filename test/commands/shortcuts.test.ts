import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { inFakeTerminal, inTerminal, withoutSequences } from './terminal.ts'
import { type Place, place, type Served } from './wb.ts'

const timeout = 60_000

const shared = place(afterAll)
let server: Served
beforeAll(async () => {
  server = await shared.serve()
})

function withDocuments(here = place()): Place & { cwd: string } {
  const cwd = join(here.home, 'work')
  mkdirSync(join(cwd, 'notes'), { recursive: true })
  writeFileSync(join(cwd, 'notes', 'whales.md'), '# Whales\n\nWhales sing.\n')
  writeFileSync(join(cwd, 'refunds.md'), '# Refunds\n\nA refund takes ten days.\n')
  return { ...here, cwd }
}

test('wb add takes the knowledge base that is named, else the only one, and makes the first; wb search asks all', {
  timeout,
}, async () => {
  const { wb, cwd } = withDocuments(shared)
  const run = (...args: string[]) => wb(args, { cwd })
  expect(await run('add', 'notes')).toMatchObject({ status: 4, stdout: '' })
  expect((await run('add', 'notes', '--create')).stderr).toContain('created knowledge base notes')
  const added = async (...args: string[]) => (await run('add', ...args, '--jq', '.added + .unchanged')).stdout
  expect(await added('refunds.md', 'notes/whales.md')).toBe('2\n')
  expect(await added('notes', 'refunds.md')).toBe('1\n')
  expect((await run('add', 'nowhere')).stderr).toBe(
    [
      '  ✗ There is no file or folder "nowhere"',
      '    wb add ./my-folder',
      '    wb add nowhere ./my-folder    if nowhere is a knowledge base',
      '',
    ].join('\n'),
  )
  await run('add', 'shop', 'refunds.md', '--create')
  expect((await run('add', 'refunds.md')).stderr).toContain('\n    wb add notes refunds.md\n')

  const passages = (args: string[]) => run('search', 'when do whales get a refund', ...args)
  const everywhere = await passages(['--jq', 'map(.knowledgeBaseId) | unique | length'])
  expect(everywhere).toMatchObject({ status: 0, stdout: '2\n' })
  const narrowed = await passages(['--kb', 'shop'])
  expect(narrowed.stdout).toContain('refunds.md')
  expect(narrowed.stdout).not.toContain('whales.md')
  expect((await run('search', 'when', 'is', 'it')).stderr).toContain('\n    wb search "when is it"\n')
  expect(await run('search')).toMatchObject({ status: 2 })
})

test('verbs of other tools run the matching command, or the error suggests one', {
  timeout,
}, async () => {
  const { wb } = place()
  await wb(['kb', 'create', 'notes'])
  expect((await wb(['kb', 'ls'])).stdout).toBe((await wb(['kb', 'list'])).stdout)
  expect((await wb(['kb', 'get', 'notes'])).stdout).toMatch(/^name\tnotes$/m)
  expect(await wb(['kb', 'rm', 'notes'])).toMatchObject({ status: 2, stdout: '' })
  expect(await wb(['kb', 'rm', 'notes', '--yes'])).toMatchObject({ status: 0 })
  expect(await wb(['kb', 'ls'])).toMatchObject({ status: 0, stdout: '' })
  expect((await wb(['mcp', 'server', 'rm', '--help'])).stdout).toContain('Usage  wb mcp servers remove')
  expect((await wb(['help', 'profiles', 'delete'])).stdout).toContain('Usage  wb profiles remove')
  const suggested: [string, string][] = [
    ['keys rm', 'keys revoke'],
    ['jobs del', 'jobs cancel'],
    ['kb add', 'kb ingest'],
    ['services set', 'services update'],
  ]
  for (const [typed, meant] of suggested) {
    const { status, stderr } = await wb(typed.split(' '))
    expect([status, stderr]).toEqual([2, expect.stringContaining(`did you mean wb ${meant}?`)])
  }
  expect((await wb(['kb', 'constructor'])).status).toBe(2)
  expect((await wb(['create', 'notes'])).stderr).toContain('Unknown command "wb create"')
})

test('topics may be typed in the singular', { timeout }, async () => {
  const { wb } = place()
  expect(await wb(['workspace', 'list'])).toMatchObject({ status: 0 })
  expect((await wb(['mcp', 'server', 'list', '--help'])).stdout).toContain('Usage  wb mcp servers list')
  expect((await wb(['help', 'access', 'principal'])).stdout).toContain('access principals create')
})

describe('wb alone', () => {
  const question = 'Ingest the folder work and search it? (y/N)'
  /** Each question is answered once. */
  const answering = (typed: string) => {
    let isOpen = true
    return (text: string) => {
      if (!isOpen || !withoutSequences(text).includes(question)) return undefined
      isOpen = false
      return typed
    }
  }

  test('offers to search this folder where nothing is yet, and takes Enter for no', { timeout }, async () => {
    const here = withDocuments()
    const wide = { cwd: here.cwd, cols: 120 }
    const declined = await inTerminal(here, [], { ...wide, answer: answering('\r') })
    expect(declined.status).toBe(0)
    expect(withoutSequences(declined.text)).toContain('wb quickstart ./my-folder')
    expect(existsSync(here.dataDir)).toBe(false)
    await here.wb(['whoami'])
    expect(existsSync(here.dataDir)).toBe(false)
    const taken = await inTerminal(here, [], { ...wide, answer: answering('y\r') })
    expect(withoutSequences(taken.text)).toMatch(/✓ knowledge {3}work +2 documents/)
    const later = await inTerminal(here, [], wide)
    expect(withoutSequences(later.text)).toMatch(/^Search your own documents/)
  })

  test('shows help in a pipe, in CI, in a home folder and where a runtime is named', {
    timeout,
  }, async () => {
    const here = withDocuments()
    const { cwd } = here
    expect((await here.wb([], { cwd })).stdout).toMatch(/^Search your own documents/)
    for (const [env, folder] of [
      [{ CI: 'true' }, cwd],
      [{ WB_URL: 'http://127.0.0.1:9' }, cwd],
      [{ HOME: cwd }, cwd],
    ] as const) {
      const { text } = await inFakeTerminal({ ...here, env: { ...here.env, ...env } }, [], { cwd: folder })
      expect(withoutSequences(text)).toMatch(/^Search your own documents/)
    }
  })
})

describe('wb open', () => {
  /** A browser that writes what it is given, and its environment, to a file. */
  function withBrowser(): Place & { opened: string } {
    const here = place()
    const opened = join(here.home, 'opened')
    const browser = join(here.home, 'browser')
    writeFileSync(browser, `#!/bin/sh\n(echo "$1"; env) >"${opened}.part"\nmv "${opened}.part" "${opened}"\n`)
    chmodSync(browser, 0o755)
    Object.assign(here.env, { DISPLAY: ':99', BROWSER: browser, XDG_CURRENT_DESKTOP: 'none' })
    return { ...here, opened }
  }
  const key = 'wb_live_abcdefghijkl_secret'

  test('shows the address and opens it, and the browser gets no key', { timeout }, async () => {
    const here = withBrowser()
    Object.assign(here.env, { WB_URL: 'http://127.0.0.1:9', WB_API_KEY: key })
    const { status, text } = await inTerminal(here, ['open'])
    expect({ status, text: withoutSequences(text) }).toEqual({ status: 0, text: 'http://127.0.0.1:9/docs\n' })
    const told = await vi.waitFor(() => readFileSync(here.opened, 'utf8'), { timeout: 10_000 })
    expect(told).toMatch(/^http:\/\/127\.0\.0\.1:9\/docs\n/)
    expect(told).not.toContain(key)
  })

  test('shows it only over SSH, without a display, in CI and in a pipe', { timeout }, async () => {
    const here = withBrowser()
    const address = 'https://workbase.example/api/v1/openapi.json'
    const args = ['open', 'api', '--url', 'https://workbase.example']
    for (const [name, value] of [
      ['SSH_CONNECTION', '::1 1 ::1 2'],
      ['DISPLAY', ''],
      ['CI', '1'],
    ] as const) {
      const { text } = await inFakeTerminal({ ...here, env: { ...here.env, [name]: value } }, args)
      expect(withoutSequences(text)).toBe(`${address}\n`)
    }
    expect(await here.wb(args)).toEqual({ status: 0, stdout: `${address}\n`, stderr: '' })
    expect((await here.wb([...args, '--jq', '.url'])).stdout).toBe(`${address}\n`)
    expect(existsSync(here.opened)).toBe(false)
  })

  test('finds the server of the data directory, and says how to start one', { timeout }, async () => {
    expect(await place().wb(['open'])).toMatchObject({
      status: 6,
      stderr: expect.stringContaining('wb serve --open'),
    })
    expect((await shared.wb(['open'])).stdout).toBe(`${server.url}/docs\n`)
  })
})
