import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { endServers, reader } from './place.ts'

const pages = [
  'README.md',
  ...readdirSync('docs')
    .filter(name => name.endsWith('.md'))
    .map(name => `docs/${name}`),
]

/** A block that is not run says why in a comment above it; `.ci/run` runs the two that the README marks. */
const block = /(?:<!-- (not run: \S.*|main|test) -->\n)?```sh\n([\s\S]*?)```/g

function blocksOf(page: string): { lines: string; why: string | undefined }[] {
  return [...readFileSync(page, 'utf8').matchAll(block)].map(([, why, lines]) => ({ lines: lines!, why }))
}

const followed = pages.filter(page => blocksOf(page).some(({ why }) => !why))

test('most pages have something to type', () => {
  expect(followed.length).toBeGreaterThanOrEqual(5)
})

/** Many commands in turn are quicker beside a server, and take the same words; a page that starts one does so itself. */
function isQuickerServed(blocks: { lines: string }[]): boolean {
  const typed = blocks.map(({ lines }) => lines).join('')
  return !typed.includes('wb serve') && (typed.match(/^(?:npx )?wb /gm) ?? []).length > 6
}

test.each(followed)('%s: every line can be typed, from top to bottom', { timeout: 120_000 }, async page => {
  const { env, folder, home } = await reader()
  onTestFinished(() => endServers(home))
  const type = (lines: string, cwd: string) => {
    const { status, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', lines], {
      cwd,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
      encoding: 'utf8',
    })
    expect(status, `${lines}\n${stderr}`).toBe(0)
  }
  const blocks = blocksOf(page).filter(({ why }) => !why)
  if (isQuickerServed(blocks)) type('wb serve', home)
  for (const { lines } of blocks) type(lines, folder)
})

test.each(pages)('%s: what it links to is there', page => {
  const targets = [...readFileSync(page, 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, to]) => to!)
  const missing = targets.map(to => join(dirname(page), to)).filter(path => !existsSync(path))
  expect(missing).toEqual([])
})
