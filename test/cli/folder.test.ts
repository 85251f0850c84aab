import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { UsageError } from '../../src/cli/faults.ts'
import { type Asking, folderSays, requireStillTrusted } from '../../src/cli/folder/decide.ts'
import { filesHere } from '../../src/cli/folder/here.ts'
import { readProfile } from '../../src/cli/profile.ts'
import { scratchTree } from './scratch-tree.ts'

const yaml = (host: string) => `version: 1\nchat: { baseUrl: "https://${host}.example" }\n`

/** A folder with a configuration, and somebody who answers as told; null where nobody can be asked. */
function folder() {
  const root = scratchTree({ 'here/workbase.yaml': yaml('a'), 'home/empty': '' })
  const cwd = join(root, 'here')
  const environment = { XDG_CONFIG_HOME: join(root, 'home'), XDG_DATA_HOME: join(root, 'home') }
  const said: string[] = []
  return {
    cwd,
    said,
    put: (text: string) => writeFileSync(join(cwd, 'workbase.yaml'), text),
    profile: (says = {}) => readProfile({}, environment, says),
    says(answer: boolean | null, more: Partial<Asking> = {}) {
      said.length = 0
      return folderSays(filesHere(cwd)!, {
        profile: readProfile({}, environment),
        clock: systemClock,
        isCi: false,
        isQuiet: false,
        note: line => said.push(line),
        warn: line => said.push(line),
        agree: answer === null ? undefined : async () => answer,
        ...more,
      })
    },
  }
}

describe('security 6: the files of a folder', () => {
  test('count after a yes, and go on to where nobody can be asked', async () => {
    const { says, said, cwd } = folder()
    expect(await says(null)).toEqual({})
    expect(await says(true)).toEqual({ config: join(cwd, 'workbase.yaml') })
    expect(said.join('\n')).toContain('chat.baseUrl  "https://a.example"')
    expect(await says(null, { isCi: true })).toEqual({ config: join(cwd, 'workbase.yaml') })
    expect(said).toEqual([])
  })

  test('are asked about again after a no only where they say something else', async () => {
    const { says, said, put } = folder()
    expect(await says(false)).toEqual({})
    expect(await says(true)).toEqual({})
    expect(said).toEqual([])
    await expect(says(null, { isCi: true })).rejects.toThrow(UsageError)
    put(yaml('b'))
    expect(await says(true)).toHaveProperty('config')
    expect(said.join('\n')).toContain('"https://a.example" → "https://b.example"')
  })

  test('are not asked about where a screen could not show what they would do', async () => {
    const { says, said, put } = folder()
    const hosts = Array.from({ length: 100 }, (_, at) => `host${at}.example`)
    put(JSON.stringify({ version: 1, runtime: { allowedHosts: hosts } }))
    expect(await says(true)).toEqual({})
    expect(said).toEqual([])
  })

  test('that were trusted and cannot be read any more are an error, and left aside by what needs none of them', async () => {
    const { says, put, cwd } = folder()
    await says(true)
    put('a: [')
    await expect(says(true)).rejects.toThrow(/cannot be trusted any more/)
    expect(await says(null, { isQuiet: true })).toEqual({})
    symlinkSync('/nowhere', join(cwd, '.workbase'))
    expect(await says(null, { isQuiet: true })).toEqual({})
  })

  test('are looked at again before a server restarts with them', async () => {
    const { says, profile, put } = folder()
    const trusted = profile(await says(true))
    await requireStillTrusted(trusted)
    put(yaml('b'))
    await expect(requireStillTrusted(trusted)).rejects.toThrow(/not those that you trusted/)
    await requireStillTrusted(profile())
  })

  test('are those of the folder itself, not of one above it', () => {
    const { cwd } = folder()
    mkdirSync(join(cwd, 'below'))
    expect(filesHere(join(cwd, 'below'))).toBeUndefined()
    expect(filesHere(join(cwd, 'gone'))).toBeUndefined()
  })
})
