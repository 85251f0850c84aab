import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiKeys } from '../../src/contract/keys.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { createSandbox, type Sandbox, serveWithApiKeys } from './sandbox.ts'

/** Two runtimes that accept the user's keys. */
const runtimes = { home: createSandbox(afterAll), work: createSandbox(afterAll) }
const urls: string[] = []
const keys: string[] = []
beforeAll(async () => {
  for (const [name, runtime] of Object.entries(runtimes)) {
    const server = await serveWithApiKeys(runtime)
    const { workspaceId } = await makeWorkspace(server)
    const body = { label: `${name}-key`, scopes: ['read:content' as const] }
    urls.push(server.url)
    keys.push((await server.call(apiKeys.create, { params: { workspaceId }, body })).plaintext)
  }
})

/** Creates a sandbox with a keychain and without a data directory. */
function createUserSandbox(): Sandbox {
  const sandbox = createSandbox()
  delete sandbox.env.WB_DATA_DIR
  sandbox.env.WB_KEYCHAIN = 'file'
  return sandbox
}

test('a profile is a named runtime with its login, which a rename preserves', async () => {
  const sandbox = createUserSandbox()
  const who = async (...flags: string[]) => (await sandbox.wb(['whoami', ...flags])).stdout.split('\t')[0]
  expect((await sandbox.wb(['login', urls[0]!, '--with-token'], { input: keys[0] })).status).toBe(0)
  const work = await sandbox.wb(['login', urls[1]!, '--profile', 'work', '--with-token'], { input: keys[1] })
  expect([work.status, work.stderr]).toEqual([0, expect.stringContaining('as profile work')])
  expect(await who('--profile', 'work')).toBe('work-key')
  expect((await sandbox.wb(['whoami'])).stdout).toBe(`home-key\tAPI key\tread:content\t${urls[0]}\n`)
  expect((await sandbox.wb(['whoami'], { env: { WB_PROFILE: 'work' } })).stdout).toMatch(/^work-key\t/)
  await sandbox.wb(['profiles', 'use', 'work'])
  await sandbox.wb(['profiles', 'rename', 'work', 'office'])
  expect([await who(), await who('--profile', 'default')]).toEqual(['work-key', 'home-key'])
  const rows = JSON.parse((await sandbox.wb(['profiles', 'list', '--json'])).stdout) as object[]
  expect(rows).toEqual([
    { name: 'default', inUse: false, url: urls[0], keychain: 'file', who: 'home-key' },
    { name: 'office', inUse: true, url: urls[1], keychain: 'file', who: 'work-key' },
  ])
  const used = await sandbox.wb(['profiles', 'remove', 'office', '--yes'])
  expect([used.status, used.stderr]).toEqual([
    2,
    '  ✗ Profile office is in use\n    wb profiles use default && wb profiles remove office --yes\n',
  ])
  await sandbox.wb(['profiles', 'use', 'default'])
  const near = await sandbox.wb(['profiles', 'use', 'ofice'])
  expect(near.stderr).toContain('\n    did you mean office?\n')
  expect((await sandbox.wb(['profiles', 'remove', 'office', '--yes'])).status).toBe(0)
  const missing = await sandbox.wb(['whoami', '--profile', 'office'])
  expect([missing.status, missing.stderr]).toEqual([
    2,
    expect.stringContaining('There is no profile named "office"'),
  ])
  expect((await sandbox.wb(['logout', '--all', '--json'])).stdout).toBe(
    `[{"profile":"default","runtime":"${urls[0]}"}]\n`,
  )
})

test('a login is sent only to its own runtime, and not to a discovered one [security rule 6]', async () => {
  const sandbox = createUserSandbox()
  await sandbox.wb(['login', urls[0]!, '--with-token'], { input: keys[0] })
  const other = await sandbox.wb(['whoami', '--url', urls[1]!])
  expect([other.status, other.stderr]).toEqual([
    3,
    expect.stringContaining('rejects requests without credentials'),
  ])
  const found = await sandbox.wb(['whoami', '--data-dir', runtimes.work.dataDir])
  expect([found.status, found.stderr]).toEqual([
    3,
    expect.stringContaining('rejects requests without credentials'),
  ])
})

test('the suggested command removes the only profile', async () => {
  const { wb } = createSandbox()
  const first = await wb(['profiles', 'remove', 'default'])
  expect([first.status, first.stderr]).toEqual([2, expect.stringContaining('\n    wb logout    removes')])
  await wb(['profiles', 'rename', 'default', 'home'])
  const { stderr } = await wb(['profiles', 'remove', 'home', '--yes'])
  const lines = stderr.trim().split('\n').at(-1)!.trim().split(' && ')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect((await wb(line.split(' ').slice(1))).status, line).toBe(0)
  expect((await wb(['profiles', 'list'])).stdout).toMatch(/^\*\tdefault\t/)
})

test('names are case-sensitive, and a name that differs only in case is refused', async () => {
  const { wb } = createUserSandbox()
  await wb(['profiles', 'add', 'Prod', '--url', 'https://wb.example'])
  expect((await wb(['profiles', 'list'])).stdout).toContain('\tProd\thttps://wb.example\t')
  const lookedUp = await wb(['profiles', 'use', 'prod'])
  expect([lookedUp.status, lookedUp.stderr]).toEqual([
    2,
    expect.stringContaining('There is no profile named "prod"\n    did you mean Prod?\n'),
  ])
  const twins = [
    ['profiles', 'add', 'prod'],
    ['profiles', 'rename', 'default', 'PROD'],
    ['login', urls[0]!, '--profile', 'prod', '--with-token'],
  ]
  for (const words of twins) {
    const { status, stderr } = await wb(words, { input: keys[0] })
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/A profile named Prod already exists; (prod|PROD) differs from it only in case/),
    ])
  }
  expect((await wb(['profiles', 'use', 'Prod'])).stderr).toBe('  ✓ switched to profile Prod\n')
  expect((await wb(['profiles', 'rename', 'Prod', 'prod'])).status).toBe(0)
  const { stderr } = await wb(['profiles', 'remove', 'prod', '--yes'])
  expect(stderr).toContain('✗ Profile prod is in use\n')
  expect((await wb(['profiles', 'list', '--json'])).stdout).toMatch(
    /"name":"default".*"name":"prod","inUse":true/,
  )
})

test('rejects unsafe or duplicate profile names and invalid profile files, and changes nothing', async () => {
  const sandbox = createSandbox()
  for (const name of ['../x', '-x', 'a b', 'x'.repeat(65)])
    expect((await sandbox.wb(['profiles', 'add', '--', name])).status, name).toBe(2)
  expect((await sandbox.wb(['profiles', 'add', 'work', '--url', 'https://wb.example'])).status).toBe(0)
  const unknown = await sandbox.wb(['whoami', '--profile', 'constructor'])
  expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('There is no profile')])
  expect((await sandbox.wb(['profiles', 'add', '__proto__'])).status).toBe(0)
  expect((await sandbox.wb(['profiles', 'list', '--json'])).stdout).toContain('"name":"__proto__"')
  expect((await sandbox.wb(['profiles', 'add', 'work'])).stderr).toContain(
    'A profile named work already exists',
  )
  const folder = join(sandbox.env.XDG_CONFIG_HOME!, 'workbase')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'profiles.json'), '{"profiles": ')
  const broken = await sandbox.wb(['profiles', 'add', 'other'])
  expect([broken.status, broken.stderr]).toEqual([2, expect.stringContaining('is not a valid profiles file')])
  expect(readFileSync(join(folder, 'profiles.json'), 'utf8')).toBe('{"profiles": ')
})
