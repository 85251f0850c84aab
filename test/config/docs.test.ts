import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { formatKey, leavesOf } from '../../src/config/key-path.ts'
import { knownKeys } from '../../src/config/known-keys.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { configSchema } from '../../src/config/schema.ts'

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
/** Default of each key, from the tables of the page. */
const documented = new Map(
  [...page.matchAll(/^\| `([\w.[\]*]+)` \| (\S.*?) \| (?=\S)/gm)].map(
    ([, key, value]) => [key!, value!] as const,
  ),
)

test('every key of the schema is documented, and every documented key exists', () => {
  const known = knownKeys(configSchema)
  const ends = known.filter(
    key => !known.some(other => other.startsWith(`${key}.`) || other.startsWith(`${key}[]`)),
  )
  const missing = ends.filter(key => !documented.has(key) && !documented.has(`${key}.*`))
  expect(missing).toEqual([])
  const settings = [...documented.keys()].filter(key =>
    /^(?:version|(?:runtime|controlPlane|auth|seedWorkspaces|chat|mcp)\b)/.test(key),
  )
  const strangers = settings.filter(key => !known.includes(key.replace(/\.\*$/, '')))
  expect(strangers).toEqual([])
  expect(ends.length).toBeGreaterThan(90)
})

test('every default matches the documentation', () => {
  const config = configSchema.parse({ version: 1 })
  for (const { path, value } of leavesOf(config)) {
    const key = formatKey(path)
    if (key !== 'version') expect([key, documented.get(key)]).toEqual([key, `\`${JSON.stringify(value)}\``])
  }
})

type Tree = Record<string, unknown>

/** Merges two trees. Values of the second one take precedence. */
function mergeTrees(base: Tree, more: Tree): Tree {
  const isTree = (value: unknown): value is Tree =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
  const entries = Object.entries(more).map(([key, value]) => {
    const below = base[key]
    return [key, isTree(below) && isTree(value) ? mergeTrees(below, value) : value]
  })
  return { ...base, ...Object.fromEntries(entries) }
}

test('sign-in examples are valid configurations or sections', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wb-docs-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'workbase.yaml')
  const text = readFileSync(new URL('../../docs/signing-in.md', import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block]) => parse(block!) as Tree)
  const whole = blocks.find(block => block.version === 1)!
  for (const block of blocks) {
    const standsAlone = (block.auth as Tree).mode !== undefined
    writeFileSync(path, JSON.stringify(mergeTrees(standsAlone ? { version: 1 } : whole, block)))
    expect(loadConfig({ path }, createEnvironment({})).warnings).toEqual([])
  }
  expect(blocks.length).toBeGreaterThanOrEqual(3)
})
