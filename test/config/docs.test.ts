import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { formatKey, leaves } from '../../src/config/key-path.ts'
import { knownKeys } from '../../src/config/known-keys.ts'
import { configSchema } from '../../src/config/schema.ts'

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8')
/** Default of each key, by the tables of the page. */
const documented = new Map(
  [...page.matchAll(/^\| `([\w.[\]*]+)` \| (\S.*?) \| (?=\S)/gm)].map(
    ([, key, value]) => [key!, value!] as const,
  ),
)

test('every key of the schema is documented, and every documented key is one', () => {
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

test('every default is the documented one', () => {
  const config = configSchema.parse({ version: 1 })
  for (const { path, value } of leaves(config)) {
    const key = formatKey(path)
    if (key !== 'version') expect([key, documented.get(key)]).toEqual([key, `\`${JSON.stringify(value)}\``])
  }
})
