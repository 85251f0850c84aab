import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createSandbox, type Sandbox, type TestServer } from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000

const shared = createSandbox(afterAll)
let server: TestServer
beforeAll(async () => {
  server = await shared.serve()
})

function addDocuments(sandbox = createSandbox()): Sandbox & { cwd: string } {
  const cwd = join(sandbox.home, 'work')
  mkdirSync(join(cwd, 'notes'), { recursive: true })
  writeFileSync(join(cwd, 'notes', 'whales.md'), '# Whales\n\nWhales sing.\n')
  writeFileSync(join(cwd, 'refunds.md'), '# Refunds\n\nA refund takes ten days.\n')
  return { ...sandbox, cwd }
}

test('wb add uses the named or the only knowledge base, or creates the first one, and wb search searches all', {
  timeout,
}, async () => {
  const { wb, cwd } = addDocuments(shared)
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
  const found = '[.[] | ., .alsoIn[]? | .knowledgeBaseId] | unique | length'
  const everywhere = await passages(['--jq', found])
  expect(everywhere).toMatchObject({ status: 0, stdout: '2\n' })
  const narrowed = await passages(['--kb', 'shop'])
  expect(narrowed.stdout).toContain('refunds.md')
  expect(narrowed.stdout).not.toContain('whales.md')
  expect((await run('search', 'when', 'is', 'it')).stderr).toContain('\n    wb search "when is it"\n')
  expect(await run('search')).toMatchObject({ status: 2 })
})

test('common verbs run the matching command, or the error suggests one', {
  timeout,
}, async () => {
  const { wb } = createSandbox()
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

test('accepts singular topic names', { timeout }, async () => {
  const { wb } = createSandbox()
  expect(await wb(['workspace', 'list'])).toMatchObject({ status: 0 })
  expect((await wb(['mcp', 'server', 'list', '--help'])).stdout).toContain('Usage  wb mcp servers list')
  expect((await wb(['help', 'access', 'principal'])).stdout).toContain('access principals create')
})

describe('wb without arguments', () => {
  const question = 'Ingest the folder work and search it? (y/N)'
  /** Answers each prompt once. */
  const answering = (typed: string) => {
    let isOpen = true
    return (text: string) => {
      if (!isOpen || !stripSequences(text).includes(question)) return undefined
      isOpen = false
      return typed
    }
  }

  test('offers to search this folder if there is no knowledge base, and Enter declines', {
    timeout,
  }, async () => {
    const sandbox = addDocuments()
    const wide = { cwd: sandbox.cwd, cols: 120 }
    const declined = await runInTerminal(sandbox, [], { ...wide, answer: answering('\r') })
    expect(declined.status).toBe(0)
    expect(stripSequences(declined.text)).toContain('wb quickstart ./my-folder')
    expect(existsSync(sandbox.dataDir)).toBe(false)
    await sandbox.wb(['whoami'])
    expect(existsSync(sandbox.dataDir)).toBe(false)
    const accepted = await runInTerminal(sandbox, [], { ...wide, answer: answering('y\r') })
    expect(stripSequences(accepted.text)).toMatch(/✓ knowledge {3}work +2 documents/)
    const later = await runInTerminal(sandbox, [], wide)
    expect(stripSequences(later.text)).toMatch(/^Search your own documents/)
  })

  test('shows help in a pipe, in CI, in a home folder and with a named runtime', {
    timeout,
  }, async () => {
    const sandbox = addDocuments()
    const { cwd } = sandbox
    expect((await sandbox.wb([], { cwd })).stdout).toMatch(/^Search your own documents/)
    for (const [env, folder] of [
      [{ CI: 'true' }, cwd],
      [{ WB_URL: 'http://127.0.0.1:9' }, cwd],
      [{ HOME: cwd }, cwd],
    ] as const) {
      const { text } = await runInFakeTerminal({ ...sandbox, env: { ...sandbox.env, ...env } }, [], {
        cwd: folder,
      })
      expect(stripSequences(text)).toMatch(/^Search your own documents/)
    }
  })
})

describe('wb open', () => {
  /** Adds a browser that writes its arguments and environment to a file. */
  function addBrowser(): Sandbox & { opened: string } {
    const sandbox = createSandbox()
    const opened = join(sandbox.home, 'opened')
    const browser = join(sandbox.home, 'browser')
    writeFileSync(browser, `#!/bin/sh\n(echo "$1"; env) >"${opened}.part"\nmv "${opened}.part" "${opened}"\n`)
    chmodSync(browser, 0o755)
    Object.assign(sandbox.env, { DISPLAY: ':99', BROWSER: browser, XDG_CURRENT_DESKTOP: 'none' })
    return { ...sandbox, opened }
  }
  const key = 'wb_live_abcdefghijkl_secret'

  test('prints the address and opens it without passing the key to the browser', { timeout }, async () => {
    const sandbox = addBrowser()
    Object.assign(sandbox.env, { WB_URL: 'http://127.0.0.1:9', WB_API_KEY: key })
    const { status, text } = await runInTerminal(sandbox, ['open'])
    expect({ status, text: stripSequences(text) }).toEqual({ status: 0, text: 'http://127.0.0.1:9/docs\n' })
    const opened = await vi.waitFor(() => readFileSync(sandbox.opened, 'utf8'), { timeout: 10_000 })
    expect(opened).toMatch(/^http:\/\/127\.0\.0\.1:9\/docs\n/)
    expect(opened).not.toContain(key)
  })

  test('only prints the address over SSH, without a display, in CI and in a pipe', { timeout }, async () => {
    const sandbox = addBrowser()
    const address = 'https://workbase.example/api/v1/openapi.json'
    const args = ['open', 'api', '--url', 'https://workbase.example']
    for (const [name, value] of [
      ['SSH_CONNECTION', '::1 1 ::1 2'],
      ['DISPLAY', ''],
      ['CI', '1'],
    ] as const) {
      const { text } = await runInFakeTerminal({ ...sandbox, env: { ...sandbox.env, [name]: value } }, args)
      expect(stripSequences(text)).toBe(`${address}\n`)
    }
    expect(await sandbox.wb(args)).toEqual({ status: 0, stdout: `${address}\n`, stderr: '' })
    expect((await sandbox.wb([...args, '--jq', '.url'])).stdout).toBe(`${address}\n`)
    expect(existsSync(sandbox.opened)).toBe(false)
  })

  test('finds the server of the data directory, or suggests how to start one', { timeout }, async () => {
    expect(await createSandbox().wb(['open'])).toMatchObject({
      status: 6,
      stderr: expect.stringContaining('wb serve --open'),
    })
    expect((await shared.wb(['open'])).stdout).toBe(`${server.url}/docs\n`)
  })
})
