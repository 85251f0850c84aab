import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { readProfile } from '../../src/cli/settings/profile.ts'
import { findFolderFiles } from '../../src/cli/trust/folder-files.ts'
import {
  requireStillTrusted,
  resolveFolderSettings,
  type TrustOptions,
} from '../../src/cli/trust/folder-settings.ts'
import { scratchTree } from './scratch-tree.ts'

const yaml = (host: string) => `version: 1\nchat: { baseUrl: "https://${host}.example" }\n`

/**
 * Creates a folder with a configuration file. `decided` answers the trust prompt, or resolves without a prompt if
 * the answer is null.
 */
function createTrustFixture() {
  const root = scratchTree({ 'here/workbase.yaml': yaml('a'), 'home/empty': '' })
  const cwd = join(root, 'here')
  const env = { XDG_CONFIG_HOME: join(root, 'home'), XDG_DATA_HOME: join(root, 'home') }
  const output: string[] = []
  return {
    cwd,
    output,
    put: (text: string) => writeFileSync(join(cwd, 'workbase.yaml'), text),
    profile: (says = {}) => readProfile({}, { env, cwd }, says),
    decided(answer: boolean | null, more: Partial<TrustOptions> = {}) {
      output.length = 0
      return resolveFolderSettings(findFolderFiles(cwd)!, {
        profile: readProfile({}, { env, cwd }),
        clock: systemClock,
        isCi: false,
        note: line => output.push(line),
        warn: line => output.push(line),
        confirm: answer === null ? undefined : async () => answer,
        ...more,
      })
    },
  }
}

describe('the files of a folder [security rule 6]', () => {
  test('take effect after a yes, and remain trusted without a prompt', async () => {
    const { decided, output, cwd } = createTrustFixture()
    const config = join(cwd, 'workbase.yaml')
    expect(await decided(null)).toEqual({ settings: {}, ignored: [config] })
    expect(await decided(true)).toEqual({ settings: { config }, ignored: [] })
    expect(output.join('\n')).toContain('chat.baseUrl  "https://a.example"')
    expect(await decided(null, { isCi: true })).toEqual({ settings: { config }, ignored: [] })
    expect(output).toEqual([])
  })

  test('cause a new prompt after a no only if they change', async () => {
    const { decided, output, put } = createTrustFixture()
    expect(await decided(false)).toMatchObject({ settings: {} })
    expect(await decided(true)).toMatchObject({ settings: {} })
    expect(output).toEqual([])
    const { settings, refusal } = await decided(null, { isCi: true })
    expect([settings, refusal?.error, refusal?.selectsRuntime]).toEqual([{}, expect.any(UsageError), false])
    put(yaml('b'))
    expect(await decided(true)).toHaveProperty('settings.config')
    expect(output.join('\n')).toContain('"https://a.example" → "https://b.example"')
  })

  test('cause no prompt if a screen could not show their effect', async () => {
    const { decided, output, put } = createTrustFixture()
    const hosts = Array.from({ length: 100 }, (_, at) => `host${at}.example`)
    put(JSON.stringify({ version: 1, runtime: { allowedHosts: hosts } }))
    expect(await decided(true)).toMatchObject({ settings: {} })
    expect(output).toEqual([])
  })

  test('take no effect if they were trusted but cannot be read, and stop commands that need them', async () => {
    const { decided, put, cwd } = createTrustFixture()
    await decided(true)
    put('a: [')
    const fault = { message: expect.stringContaining('can no longer be trusted') }
    expect(await decided(true)).toMatchObject({
      settings: {},
      refusal: { error: fault, selectsRuntime: false },
    })
    symlinkSync('/nowhere', join(cwd, '.workbase'))
    expect(await decided(true)).toMatchObject({
      settings: {},
      refusal: { error: fault, selectsRuntime: true },
    })
    writeFileSync(join(cwd, '.wb.yaml'), 'url: http://127.0.0.1:1\n')
    expect(await decided(true)).toMatchObject({
      settings: {},
      refusal: { error: { code: 'validation_error' } },
    })
  })

  test('are checked again before a server restarts with them', async () => {
    const { decided, profile, put } = createTrustFixture()
    const trusted = profile((await decided(true)).settings)
    await requireStillTrusted(trusted)
    put(yaml('b'))
    await expect(requireStillTrusted(trusted)).rejects.toThrow(/have changed since you trusted them/)
    await requireStillTrusted(profile())
  })

  test('are not inherited from a parent folder', () => {
    const { cwd } = createTrustFixture()
    mkdirSync(join(cwd, 'below'))
    expect(findFolderFiles(join(cwd, 'below'))).toBeUndefined()
    expect(findFolderFiles(join(cwd, 'gone'))).toBeUndefined()
  })
})
