import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { apiKeys } from '../../src/contract/keys.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { createSandbox, serveWithApiKeys } from './sandbox.ts'

/** A sandbox whose runtime requires a key, with a key in the environment. */
async function sandboxWithKey() {
  const sandbox = createSandbox()
  sandbox.env.WB_KEYCHAIN = 'file'
  const { call } = await serveWithApiKeys(sandbox)
  const { workspaceId } = await makeWorkspace({ call }, { name: 'demo' })
  const { plaintext: key } = await call(apiKeys.create, { params: { workspaceId }, body: { label: 'agent' } })
  sandbox.env.WB_API_KEY = key
  const install = async (...args: string[]) => {
    const { status, stdout, stderr } = await sandbox.wb(['mcp', 'install', ...args])
    expect({ status, stderr }).toMatchObject({ status: 0 })
    return { stdout, stderr }
  }
  return { ...sandbox, key, install }
}

const timeout = 60_000

test('install reports that the runtime requires a key and how each client passes it', {
  timeout,
}, async () => {
  const { install, key, home, wb } = await sandboxWithKey()
  const plain = await install()
  expect(plain.stdout).not.toContain('WB_API_KEY')
  expect(plain.stderr).toContain('the runtime requires a key, and the entry contains none')
  expect(plain.stderr).toContain('wb login --with-token < KEY_FILE')
  expect((await install('claude-desktop')).stderr).toContain('wb mcp install claude-desktop --include-key')

  const cursor = await install('cursor')
  expect(JSON.parse(cursor.stdout).mcpServers['workbase-demo'].env).toEqual({
    WB_API_KEY: expect.stringMatching(/^\$\{env:WB_API_KEY\}$/),
  })
  expect(cursor.stderr).toContain('Cursor passes on WB_API_KEY')

  const path = join(home, '.config', 'Code', 'User', 'mcp.json')
  mkdirSync(join(path, '..'), { recursive: true })
  const other = { type: 'promptString', id: 'other' }
  writeFileSync(path, JSON.stringify({ inputs: [other] }))
  const code = await install('vscode', '--write', '--yes')
  expect(code.stderr).toContain('VS Code asks for it once')
  const written = readFileSync(path, 'utf8')
  expect(written).not.toContain(key)
  const { inputs, servers } = JSON.parse(written)
  const reference = { WB_API_KEY: expect.stringMatching(/^\$\{input:workbase-api-key\}$/) }
  expect(inputs).toMatchObject([other, { id: 'workbase-api-key', password: true }])
  expect(servers['workbase-demo'].env).toEqual(reference)
  expect((await install('vscode', '--write', '--yes')).stderr).toContain('already contains the entry')

  const login = await wb(['login', '--with-token'], { input: key })
  expect(login).toMatchObject({ status: 0 })
  const known = await install('cursor')
  expect(known.stderr).toContain('wb mcp serve uses your login on this machine')
  expect(known.stdout).not.toContain('WB_API_KEY')
})

test('install without a key prints an entry that refers to one', { timeout }, async () => {
  const { env, install, wb } = await sandboxWithKey()
  delete env.WB_API_KEY
  const { stdout, stderr } = await install('cursor')
  expect(JSON.parse(stdout).mcpServers).toEqual({
    workbase: {
      command: 'wb',
      args: ['mcp', 'serve', '--data-dir', env.WB_DATA_DIR, '--config', env.WB_CONFIG],
      env: { WB_API_KEY: expect.stringMatching(/^\$\{env:WB_API_KEY\}$/) },
    },
  })
  expect(stderr).toContain('Cursor passes on WB_API_KEY')
  const named = JSON.parse((await install('claude-desktop', '-w', 'demo')).stdout)
  expect(named.mcpServers['workbase-demo'].args.slice(0, 4)).toEqual(['mcp', 'serve', '-w', 'demo'])
  const refused = await wb(['mcp', 'install'], { env: { WB_API_KEY: 'wb_live_wrong' } })
  expect(refused).toMatchObject({ status: 3, stdout: '' })
})

test('install writes the key itself only with --include-key', { timeout }, async () => {
  const { install, key, home, env, wb } = await sandboxWithKey()
  const { stderr } = await install('cursor', '--include-key', '--write', '--yes')
  expect(stderr).not.toContain('requires a key')
  const { mcpServers } = JSON.parse(readFileSync(join(home, '.cursor', 'mcp.json'), 'utf8'))
  expect(mcpServers['workbase-demo'].env).toEqual({ WB_API_KEY: key })
  delete env.WB_API_KEY
  const none = await wb(['mcp', 'install', 'cursor', '--include-key', '--as-operator'])
  expect(none).toMatchObject({ status: 2, stderr: expect.stringContaining('WB_API_KEY, which is not set') })
})

test('install does not mention keys if the runtime requires none', { timeout }, async () => {
  const { wb } = createSandbox()
  await wb(['workspaces', 'create', 'demo'])
  expect((await wb(['mcp', 'install'])).stderr).toBe('')
})
