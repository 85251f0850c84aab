import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const script = resolve('scripts/release.mjs')

/** Creates a repository with a package of version 0.1.0, a changelog, and a manifest that names the version. */
function repository(changelog: string) {
  const folder = mkdtempSync(join(tmpdir(), 'wb-release-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: folder,
      encoding: 'utf8',
    }).trim()
  const manifest = `node -p 'require("./package.json").version' > manifest`
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'released', version: '0.1.0', scripts: { manifest } }),
  )
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  writeFileSync(join(folder, 'manifest'), '0.1.0\n')
  git('init', '--quiet', '--initial-branch', 'main')
  git('add', '.')
  git('commit', '--quiet', '--message', 'first')
  const release = (version: string) =>
    spawnSync(process.execPath, [script, version], {
      cwd: folder,
      encoding: 'utf8',
      env: {
        ...process.env,
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@example.com',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@example.com',
      },
    })
  const read = (file: string) => readFileSync(join(folder, file), 'utf8')
  return { folder, git, release, read }
}

test('a release sets the version, dates the changelog, commits and tags', () => {
  const { git, release, read } = repository(
    '# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-02\n\n- Old.\n',
  )
  expect(release('0.2.0')).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('git push --follow-tags'),
  })
  expect(JSON.parse(read('package.json'))).toMatchObject({ version: '0.2.0' })
  expect(read('manifest')).toBe('0.2.0\n')
  expect(read('CHANGELOG.md')).toMatch(
    /^# Changelog\n\n## Unreleased\n\n## 0\.2\.0 - \d{4}-\d\d-\d\d\n\n- New\.\n\n## 0\.1\.0 - 2026-01-02\n\n- Old\.\n$/,
  )
  expect(git('status', '--porcelain')).toBe('')
  expect(git('log', '--format=%s', '-1')).toBe('release: 0.2.0')
  expect(git('for-each-ref', 'refs/tags', '--format=%(refname:short) %(contents:body)')).toBe('v0.2.0 - New.')
})

test.each([
  ['0.2', '## Unreleased\n\n- New.\n', '"0.2" is not a version'],
  ['0.2.0', '## Unreleased\n\n## 0.1.0\n\n- Old.\n', 'no entry below "Unreleased"'],
  ['0.2.0', '- New.\n', 'no section "Unreleased"'],
])('release %s with the changelog %j is rejected without a change', (version, changelog, reason) => {
  const { git, release } = repository(changelog)
  expect(release(version)).toMatchObject({ status: 1, stderr: expect.stringContaining(reason) })
  expect(git('status', '--porcelain')).toBe('')
  expect(git('tag')).toBe('')
})

test('a release with uncommitted changes is rejected', () => {
  const { folder, release } = repository('## Unreleased\n\n- New.\n')
  writeFileSync(join(folder, 'manifest'), 'edited\n')
  expect(release('0.2.0')).toMatchObject({ status: 1, stderr: expect.stringContaining('commit or remove') })
})
