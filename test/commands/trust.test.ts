import { copyFileSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeBase, makeWorkspace } from '../harness/resources.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { runInTerminal, stripSequences } from './terminal.ts'

/** Creates a project folder, with the default data directory of the platform. */
function createProject(): { sandbox: Sandbox; cwd: string; put(name: string, text: string): void } {
  const sandbox = createSandbox()
  sandbox.env.WB_DATA_DIR = ''
  const cwd = join(sandbox.home, 'project')
  mkdirSync(cwd)
  return { sandbox, cwd, put: (name, text) => writeFileSync(join(cwd, name), text) }
}

/** Runs a command in a terminal, and answers the trust prompt with yes. */
async function runAndTrust(sandbox: Sandbox, cwd: string, args: string[]): Promise<string> {
  let isAsked = false
  const { text } = await runInTerminal(sandbox, args, {
    cwd,
    cols: 200,
    answer(written) {
      if (isAsked || !written.includes('Trust them?')) return undefined
      isAsked = true
      return 'y\r'
    },
  })
  return stripSequences(text)
}

describe('wb trust [security rule 6]', () => {
  test('makes a file effective as if it was named, until trust is removed, and stores the list privately', async () => {
    const { sandbox, cwd, put } = createProject()
    expect(await sandbox.wb(['trust'], { cwd })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`${cwd} has no files that need trust`),
    })
    put('workbase.yaml', 'version: 1\nauth: { mode: apiKey }\n')
    const trusted = await sandbox.wb(['trust', 'project'], { cwd: sandbox.home })
    expect(trusted.stderr).toContain('      auth.mode  "apiKey"\n')
    expect(statSync(join(sandbox.env.XDG_CONFIG_HOME!, 'workbase/trusted.json')).mode & 0o777).toBe(0o600)
    const path = JSON.parse((await sandbox.wb(['config', 'path', '--json'], { cwd })).stdout) as object
    expect(path).toEqual({ path: join(cwd, 'workbase.yaml'), origin: 'working directory' })
    const [listed] = JSON.parse((await sandbox.wb(['trust', '--list', '--json'])).stdout) as object[]
    expect(listed).toMatchObject({ folder: cwd, state: 'trusted', files: ['workbase.yaml'] })
    await sandbox.wb(['trust', '--remove', cwd])
    expect((await sandbox.wb(['config', 'path'], { cwd })).stderr).toContain('is not used because')
  })

  test('asks once, and again when a sensitive key changes, with the old and new value', async () => {
    const { sandbox, cwd, put } = createProject()
    const baseUrl = (host: string) =>
      `version: 1\nchat: { baseUrl: "https://${host}.example", retrievalK: 3 }\n`
    const line = ['config', 'path']
    put('workbase.yaml', baseUrl('a'))
    expect(await runAndTrust(sandbox, cwd, line)).toContain('chat.baseUrl  "https://a.example"')
    put('workbase.yaml', baseUrl('a').replace('3', '4'))
    expect(await runAndTrust(sandbox, cwd, line)).toBe(`${join(cwd, 'workbase.yaml')}\n`)
    put('workbase.yaml', baseUrl('b'))
    expect(await sandbox.wb(line, { cwd })).toMatchObject({ status: 2, stdout: '' })
    expect(await runAndTrust(sandbox, cwd, line)).toContain('"https://a.example" → "https://b.example"')
    expect((await sandbox.wb(line, { cwd, env: { CI: 'true' } })).status).toBe(0)
  })

  test('a data directory that wb created needs no trust, but a replaced store does', async () => {
    const { sandbox, cwd } = createProject()
    await sandbox.wb(['workspaces', 'create', 'demo', '--data-dir', '.workbase'], { cwd })
    const line = ['workspaces', 'list', '--json']
    const inCi = await sandbox.wb(line, { cwd, env: { CI: 'true' } })
    expect(inCi).toMatchObject({ status: 0, stdout: expect.stringContaining('"demo"') })
    expect((await sandbox.wb(line, { cwd: sandbox.home })).stdout).toBe('[]\n')
    const store = join(cwd, '.workbase/workbase.db')
    copyFileSync(store, `${store}.planted`)
    renameSync(`${store}.planted`, store)
    const replaced = await sandbox.wb(line, { cwd })
    expect(replaced).toMatchObject({ status: 2, stdout: '' })
    expect(replaced.stderr).toContain('.workbase/')
  })

  test('.wb.yaml selects a knowledge base and a workspace without trust', async () => {
    const { sandbox, cwd, put } = createProject()
    const server = await sandbox.serve()
    const { workspaceId } = await makeWorkspace(server)
    for (const name of ['papers', 'notes']) await makeBase(server, { workspaceId, name })
    put('.wb.yaml', 'knowledgeBase: notes\n')
    const shown = await sandbox.wb(['kb', 'show', '--json'], { cwd, env: { CI: 'true' } })
    expect(JSON.parse(shown.stdout)).toMatchObject({ name: 'notes' })
    put('.wb.yaml', 'workspace: third\n')
    expect((await sandbox.wb(['kb', 'list'], { cwd })).stderr).toContain(
      'No workspace is named "third" (from .wb.yaml)',
    )
  })

  test('a profile that .wb.yaml names can be created afterwards', async () => {
    const { sandbox, cwd, put } = createProject()
    put('.wb.yaml', 'profile: work\n')
    await sandbox.wb(['trust'], { cwd })
    expect((await sandbox.wb(['workspaces', 'list'], { cwd })).status).toBe(2)
    expect((await sandbox.wb(['profiles', 'add', 'work'], { cwd })).status).toBe(0)
    const used = await sandbox.wb(['workspaces', 'list', '-q'], { cwd })
    expect(used).toEqual({ status: 0, stdout: '', stderr: '  using profile work, selected by .wb.yaml\n' })
  })
})
