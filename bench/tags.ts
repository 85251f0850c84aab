/**
 * Measures what the tags of documents cost when documents are stored, compared with a schema without tags.
 *
 * npm run bench:tags
 */
import Database from '../src/storage/sqlite/driver.ts'
import { migrations } from '../src/storage/sqlite/migrations/index.ts'
import { median, table } from './statistics.ts'

const documents = 2_000
const rounds = 7
const cases = [
  { names: 0, entries: 0 },
  { names: 5, entries: 10 },
  { names: 5, entries: 100 },
]
/** Number of migrations before the one that adds tags. */
const migrationsWithoutTags = 12

function bodiesOf({ names, entries }: (typeof cases)[number]): string[] {
  const fields = Array.from({ length: entries }, (_, entry) => `field${entry}`)
  return Array.from({ length: documents }, (_, n) =>
    JSON.stringify({
      workspaceId: 'workspace',
      knowledgeBaseId: 'base',
      documentId: `document-${n}`,
      visibleTo: Array.from({ length: names }, (_, name) => `group-${(n + name) % 50}`),
      metadata: Object.fromEntries(fields.map((field, entry) => [field, `value ${n % 100} ${entry}`])),
    }),
  )
}

/** Returns the CPU time in microseconds to store one document, in a transaction of all documents. */
function measure(bodies: readonly string[], schema: readonly string[]): number {
  const db = new Database(':memory:')
  for (const migration of schema) db.exec(migration)
  const insert = db.prepare('INSERT INTO documents (version, body) VALUES (1, ?)')
  const start = process.cpuUsage()
  db.transaction(() => bodies.forEach(body => void insert.run(body)))()
  const { user, system } = process.cpuUsage(start)
  db.close()
  return (user + system) / bodies.length
}

const rows = cases.map(example => {
  const bodies = bodiesOf(example)
  const times = Array.from({ length: rounds }, () => ({
    without: measure(bodies, migrations.slice(0, migrationsWithoutTags)),
    tagged: measure(bodies, migrations),
  }))
  const without = median(times.map(time => time.without))
  const tagged = median(times.map(time => time.tagged))
  return [example.names, example.entries, without.toFixed(0), tagged.toFixed(0)]
})
console.log(table(['names in `visibleTo`', 'metadata entries', 'without tags, µs', 'with tags, µs'], rows))
