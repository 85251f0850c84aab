import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { committedManifest } from '../../scripts/manifest.mjs'
import { createSandbox } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Commands that do not depend on the folder, with arguments that succeed. */
const independentCommands: Record<string, string[]> = {
  autocomplete: ['autocomplete', 'bash'],
  doctor: ['doctor', '--json'],
  explain: ['explain', 'kb_name_taken'],
  logout: ['logout', '--all'],
  'profiles:add': ['profiles', 'add', 'other'],
  'profiles:list': ['profiles', 'list'],
  'profiles:remove': ['profiles', 'remove', 'old', '--yes'],
  'profiles:rename': ['profiles', 'rename', 'older', 'oldest'],
  'profiles:use': ['profiles', 'use', 'default'],
  trust: ['trust', '--list'],
  version: ['version'],
}
/** Commands that only need the address of the runtime, or a login. */
const addressOnlyCommands = ['auth:token', 'login', 'open']

/** Creates an untrusted checkout on a build server. */
function createCheckout(files: Record<string, string> = { 'workbase.yaml': 'version: 1\n' }) {
  const { wb, home, env } = createSandbox()
  Object.assign(env, { WB_DATA_DIR: '', WB_KEYCHAIN: 'file', CI: 'true' })
  const cwd = join(home, 'checkout')
  mkdirSync(cwd)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
  const settings = join(env.XDG_CONFIG_HOME!, 'workbase')
  mkdirSync(settings, { recursive: true })
  const empty = { workspaces: {} }
  const profiles = { default: empty, old: empty, older: empty }
  writeFileSync(join(settings, 'profiles.json'), JSON.stringify({ current: 'default', profiles }), {
    mode: 0o600,
  })
  return { cwd, wb: (args: string[], more = {}) => wb(args, { cwd, env: more }) }
}

describe('an untrusted folder in CI [security rule 6]', () => {
  test('does not affect commands that do not use its files', async () => {
    const lines = Object.values(independentCommands)
    const ended = await Promise.all(lines.map(async args => ({ args, ...(await createCheckout().wb(args)) })))
    const stderr = expect.not.stringContaining('trusted')
    expect(ended).toEqual(lines.map(args => ({ args, status: 0, stdout: expect.anything(), stderr })))
  })

  test('affects every other command, which opens the runtime or reads the configuration', () => {
    const { commands } = JSON.parse(committedManifest()) as { commands: Record<string, object> }
    const source = (id: string) => readFileSync(`commands/${id.replaceAll(':', '/')}.ts`, 'utf8')
    const needsNothing = Object.keys(commands).filter(
      id =>
        !/this\.(?:answer|chat|client|session|workspace|knowledgeBase|openContext|resolveContext|requireTrustedFolder)\b/.test(
          source(id),
        ),
    )
    expect(
      needsNothing.filter(id => !(id in independentCommands || addressOnlyCommands.includes(id))),
    ).toEqual([])
  })

  test('rejects commands that open the runtime or read the configuration', async () => {
    const refused = ['workspaces list', 'whoami', 'login', 'serve --port 0', 'config path', 'config show']
    const ended = await Promise.all(
      refused.map(async line => ({ line, ...(await createCheckout().wb(line.split(' '))) })),
    )
    const stderr = expect.stringContaining('is not trusted')
    expect(ended).toEqual(refused.map(line => ({ line, status: 2, stdout: '', stderr })))
  })

  test('is a warning in wb doctor', async () => {
    const { wb, cwd } = createCheckout()
    const { checks } = JSON.parse((await wb(['doctor', '--json'])).stdout) as { checks: object[] }
    expect(checks).toContainEqual({
      name: 'folder',
      state: 'warning',
      detail: `${join(cwd, 'workbase.yaml')}: not trusted, so not used`,
      fix: 'wb trust',
    })
  })

  test('does not prevent wb auth token if only the configuration is untrusted, but does if the runtime is', async () => {
    const key = { WB_API_KEY: 'wb_live_abcdefghijkl_0123' }
    expect(await createCheckout().wb(['auth', 'token'], key)).toMatchObject({ status: 0 })
    const named = createCheckout({ '.wb.yaml': 'profile: old\n' })
    expect(await named.wb(['auth', 'token'], key)).toMatchObject({ status: 2, stdout: '' })
    expect((await named.wb(['open'])).stderr).toContain('wb serve --open')
  })
})
