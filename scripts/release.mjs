/**
 * Prepares a release: sets the version, dates the section of the changelog, commits and tags.
 *
 *     npm run release -- VERSION
 *
 * Publishes nothing. A pushed tag starts `.github/workflows/release.yml`, which publishes with provenance.
 *
 * @see CONTRIBUTING.md#release
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const [version = ''] = process.argv.slice(2)
try {
  release()
} catch (error) {
  console.error(`release: ${error.message}`)
  process.exitCode = 1
}

function release() {
  if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
    throw new Error(`"${version}" is not a version such as 0.2.0 or 0.2.0-rc.1`)
  if (git('status', '--porcelain') !== '') throw new Error('commit or remove your changes first')
  if (git('tag', '--list', `v${version}`) !== '') throw new Error(`the tag v${version} exists`)
  const { text, notes } = releasedChangelog(readFileSync('CHANGELOG.md', 'utf8'))
  npm('version', version, '--no-git-tag-version')
  writeFileSync('CHANGELOG.md', text)
  npm('run', 'manifest')
  git('commit', '--quiet', '--all', '--message', `release: ${version}`)
  git('tag', '--annotate', `v${version}`, '--message', `Workbase ${version}\n\n${notes}`)
  console.log(`Tagged v${version}. To publish it: git push --follow-tags`)
}

/** Moves the entries below "Unreleased" to a section of the version, and returns them as notes. */
function releasedChangelog(changelog) {
  const [before, after] = changelog.split('## Unreleased\n')
  if (after === undefined) throw new Error('CHANGELOG.md has no section "Unreleased"')
  const end = after.search(/^## /m)
  const notes = (end < 0 ? after : after.slice(0, end)).trim()
  if (notes === '') throw new Error('CHANGELOG.md has no entry below "Unreleased"')
  const date = new Date().toISOString().slice(0, 10)
  return { text: `${before}## Unreleased\n\n## ${version} - ${date}\n${after}`, notes }
}

function git(...args) {
  return execFileSync('git', args, { encoding: 'utf8' }).trim()
}

function npm(...args) {
  execFileSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}
