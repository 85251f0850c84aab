import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from 'vitest'
import { cloneRepository } from '../../../src/cli/web-sources/repository.ts'
import { openPageNetwork } from '../../../src/models/page-network.ts'
import { scratchTree } from '../scratch-tree.ts'

/** Public address of every name, so that tests need no name server. */
const publicAddress = '93.184.216.34'

function cloneInto(
  root: string,
  url: string,
  ref?: string,
  more: { allowsPrivate?: boolean; env?: object } = {},
) {
  const { allowsPrivate = false, env } = more
  return cloneRepository(url, ref, join(root, 'clone'), {
    network: openPageNetwork({ allowsPrivate, resolve: async () => [publicAddress] }),
    allowsPrivate,
    env: { PATH: process.env.PATH, HOME: root, ...env },
    signal: new AbortController().signal,
  })
}

/** Creates a bare repository with two commits, a tag, a link and a hook. */
function createRepository(): { root: string; url: string } {
  const root = scratchTree({ 'work/docs/keys.md': '# Keys', 'work/old.md': 'old' })
  const work = join(root, 'work')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.com', ...args], {
      cwd: work,
      stdio: 'pipe',
    })
  symlinkSync('/etc/passwd', join(work, 'passwords.md'))
  git('init', '--quiet', '--initial-branch=main')
  git('add', '.')
  git('commit', '--quiet', '-m', 'first')
  git('tag', 'v1')
  git('rm', '--quiet', 'old.md')
  git('commit', '--quiet', '-m', 'second')
  git('clone', '--quiet', '--bare', '.', join(root, 'docs.git'))
  const hook = join(root, 'docs.git/hooks/post-checkout')
  writeFileSync(hook, `#!/bin/sh\ntouch ${join(root, 'hook-ran')}\n`)
  chmodSync(hook, 0o755)
  return { root, url: pathToFileURL(join(root, 'docs.git')).href }
}

/** Writes a program named `git` that records its arguments and environment. */
function fakeGit(): { root: string; env: object; calls(): string } {
  const root = scratchTree({})
  const record = join(root, 'calls')
  writeFileSync(join(root, 'git'), `#!/bin/sh\nprintf '%s\\n' "$@" >> ${record}\nenv >> ${record}\n`)
  chmodSync(join(root, 'git'), 0o755)
  const env = { PATH: `${root}${delimiter}${process.env.PATH}` }
  return { root, env, calls: () => (existsSync(record) ? readFileSync(record, 'utf8') : '') }
}

describe('a repository of this machine', () => {
  test('is copied without history, links and hooks', async () => {
    const { root, url } = createRepository()
    await cloneInto(root, url, undefined, { allowsPrivate: true })
    const folder = join(root, 'clone')
    expect(readdirSync(folder).sort()).toEqual(['.git', 'docs'])
    expect(readFileSync(join(folder, 'docs/keys.md'), 'utf8')).toBe('# Keys')
    expect(execFileSync('git', ['-C', folder, 'rev-list', '--count', 'HEAD'], { encoding: 'utf8' })).toBe(
      '1\n',
    )
    expect(existsSync(join(root, 'hook-ran'))).toBe(false)
  })

  test('is copied at a tag', async () => {
    const { root, url } = createRepository()
    await cloneInto(root, url, 'v1', { allowsPrivate: true })
    expect(readdirSync(join(root, 'clone')).sort()).toEqual(['.git', 'docs', 'old.md'])
  })

  test('is refused by default', async () => {
    const { root, url } = createRepository()
    await expect(cloneInto(root, url)).rejects.toMatchObject({ code: 'address_refused' })
  })

  test('that does not exist is reported with the message of Git', async () => {
    const root = scratchTree({})
    await expect(cloneInto(root, 'file:///nowhere.git', undefined, { allowsPrivate: true })).rejects.toThrow(
      /git could not read it: .*nowhere/,
    )
  })
})

describe('a remote repository', () => {
  test.each([
    ['http://example.com/a.git', 'http: URLs'],
    ['git://example.com/a.git', 'git: URLs'],
    ['ext::sh -c touch% /tmp/x', 'ext: URLs'],
    ['https://user:secret@example.com/a.git', 'credentials'],
    ['https://token@example.com/a.git', 'credentials'],
    ['https://127.0.0.1/a.git', 'private address'],
    ['ssh://git@10.0.0.1/a.git', 'private address'],
    ['git@192.168.0.1:a.git', 'private address'],
    ['ssh://-oProxyCommand=touch/a.git', ''],
    ['file://host/a.git', '--allow-private'],
  ])('%s is refused before Git starts', async (url, message) => {
    const { root, env, calls } = fakeGit()
    const refused = cloneInto(root, url, undefined, { env })
    await expect(refused).rejects.toMatchObject({
      code: 'address_refused',
      message: expect.stringContaining(message),
    })
    expect(calls()).toBe('')
  })

  test.each(['--upload-pack=touch /tmp/x', '-b', '', 'a b', 'a:b'])('the branch %j is refused', async ref => {
    const { root, env, calls } = fakeGit()
    await expect(cloneInto(root, 'https://example.com/a.git', ref, { env })).rejects.toThrow('branch')
    expect(calls()).toBe('')
  })

  test('is read from the checked address, without proxies, prompts and variables of the user', async () => {
    const { root, env, calls } = fakeGit()
    const secrets = { WB_API_KEY: 'wb_secret', GIT_DIR: '/elsewhere', https_proxy: 'http://proxy.example' }
    await cloneInto(root, 'https://example.com/a.git', 'main', { env: { ...env, ...secrets } })
    expect(calls()).toContain(`http.curloptResolve=example.com:443:${publicAddress}\n`)
    expect(calls()).toContain('protocol.allow=never\n')
    expect(calls()).toContain('--branch=main\n--\nhttps://example.com/a.git\n')
    expect(calls()).toContain('GIT_TERMINAL_PROMPT=0\n')
    expect(calls()).not.toMatch(/wb_secret|elsewhere|proxy\.example/)
  })
})
