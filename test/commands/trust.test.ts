import { copyFileSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { makeBase, makeWorkspace } from '../harness/place.ts'
import { inTerminal, withoutSequences } from './terminal.ts'
import { type Place, place } from './wb.ts'

/** Creates a project folder, with the default data directory of the platform. */
function project(): { here: Place; cwd: string; put(name: string, text: string): void } {
  const here = place()
  here.env.WB_DATA_DIR = ''
  const cwd = join(here.home, 'project')
  mkdirSync(cwd)
  return { here, cwd, put: (name, text) => writeFileSync(join(cwd, name), text) }
}

/** Runs a command in a terminal, and answers the trust prompt with yes. */
async function saying(here: Place, cwd: string, args: string[]): Promise<string> {
  let isAsked = false
  const { text } = await inTerminal(here, args, {
    cwd,
    cols: 200,
    answer(written) {
      if (isAsked || !written.includes('Trust them?')) return undefined
      isAsked = true
      return 'y\r'
    },
  })
  return withoutSequences(text)
}

describe('wb trust [security rule 6]', () => {
  test('makes a file effective as if it was named, until trust is removed, and stores the list privately', async () => {
    const { here, cwd, put } = project()
    expect(await here.wb(['trust'], { cwd })).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(`${cwd} has no files that need trust`),
    })
    put('workbase.yaml', 'version: 1\nauth: { mode: apiKey }\n')
    const trusted = await here.wb(['trust', 'project'], { cwd: here.home })
    expect(trusted.stderr).toContain('      auth.mode  "apiKey"\n')
    expect(statSync(join(here.env.XDG_CONFIG_HOME!, 'workbase/trusted.json')).mode & 0o777).toBe(0o600)
    const path = JSON.parse((await here.wb(['config', 'path', '--json'], { cwd })).stdout) as object
    expect(path).toEqual({ path: join(cwd, 'workbase.yaml'), origin: 'working directory' })
    const [listed] = JSON.parse((await here.wb(['trust', '--list', '--json'])).stdout) as object[]
    expect(listed).toMatchObject({ folder: cwd, state: 'trusted', files: ['workbase.yaml'] })
    await here.wb(['trust', '--remove', cwd])
    expect((await here.wb(['config', 'path'], { cwd })).stderr).toContain('is not used because')
  })

  test('asks once, and again when a sensitive key changes, with the old and new value', async () => {
    const { here, cwd, put } = project()
    const baseUrl = (host: string) =>
      `version: 1\nchat: { baseUrl: "https://${host}.example", retrievalK: 3 }\n`
    const line = ['config', 'path']
    put('workbase.yaml', baseUrl('a'))
    expect(await saying(here, cwd, line)).toContain('chat.baseUrl  "https://a.example"')
    put('workbase.yaml', baseUrl('a').replace('3', '4'))
    expect(await saying(here, cwd, line)).toBe(`${join(cwd, 'workbase.yaml')}\n`)
    put('workbase.yaml', baseUrl('b'))
    expect(await here.wb(line, { cwd })).toMatchObject({ status: 2, stdout: '' })
    expect(await saying(here, cwd, line)).toContain('"https://a.example" → "https://b.example"')
    expect((await here.wb(line, { cwd, env: { CI: 'true' } })).status).toBe(0)
  })

  test('a data directory that wb created needs no trust, but a replaced store does', async () => {
    const { here, cwd } = project()
    await here.wb(['workspaces', 'create', 'demo', '--data-dir', '.workbase'], { cwd })
    const line = ['workspaces', 'list', '--json']
    const here1 = await here.wb(line, { cwd, env: { CI: 'true' } })
    expect(here1).toMatchObject({ status: 0, stdout: expect.stringContaining('"demo"') })
    expect((await here.wb(line, { cwd: here.home })).stdout).toBe('[]\n')
    const store = join(cwd, '.workbase/workbase.db')
    copyFileSync(store, `${store}.planted`)
    renameSync(`${store}.planted`, store)
    const replaced = await here.wb(line, { cwd })
    expect(replaced).toMatchObject({ status: 2, stdout: '' })
    expect(replaced.stderr).toContain('.workbase/')
  })

  test('.wb.yaml selects a knowledge base and a workspace without trust', async () => {
    const { here, cwd, put } = project()
    const server = await here.serve()
    const { workspaceId } = await makeWorkspace(server)
    for (const name of ['papers', 'notes']) await makeBase(server, { workspaceId, name })
    put('.wb.yaml', 'knowledgeBase: notes\n')
    const shown = await here.wb(['kb', 'show', '--json'], { cwd, env: { CI: 'true' } })
    expect(JSON.parse(shown.stdout)).toMatchObject({ name: 'notes' })
    put('.wb.yaml', 'workspace: third\n')
    expect((await here.wb(['kb', 'list'], { cwd })).stderr).toContain(
      'No workspace is named "third" (from .wb.yaml)',
    )
  })

  test('a profile that .wb.yaml names can be created afterwards', async () => {
    const { here, cwd, put } = project()
    put('.wb.yaml', 'profile: work\n')
    await here.wb(['trust'], { cwd })
    expect((await here.wb(['workspaces', 'list'], { cwd })).status).toBe(2)
    expect((await here.wb(['profiles', 'add', 'work'], { cwd })).status).toBe(0)
    const used = await here.wb(['workspaces', 'list', '-q'], { cwd })
    expect(used).toEqual({ status: 0, stdout: '', stderr: '  using profile work, selected by .wb.yaml\n' })
  })
})
