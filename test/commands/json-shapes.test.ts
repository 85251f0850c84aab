import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSandbox, type Sandbox } from './sandbox.ts'
import { startRuntimeWithKeys } from './sign-in.ts'

/** Commands that create one of each resource, in order. Their output is part of the contract. */
const creatingCommands = [
  'quickstart work whales',
  'workspaces create scratch --kind mock',
  'kb create papers -w demo',
  'kb ingest papers work -w demo',
  'kb stats papers -w demo',
  'filters create english -k papers --where lang=en -w demo',
  'services create mine --preset recursive-char-500 -w demo',
  'agents create clerk --template bobby -w demo',
  'mcp servers add tools http://127.0.0.1:9/mcp -w demo',
  'keys create ci --role viewer --expires 90d -w demo',
  'access principals create alice -w demo',
  'kb ingest papers more --async -w demo',
  'jobs watch -w demo',
]
/** Commands that read those resources, in any order. */
const readingCommands = [
  'workspaces list',
  'workspaces show demo',
  'kb list -w demo',
  'kb show papers -w demo',
  'kb search papers whales -w demo',
  'search whales -w demo',
  'documents list papers -w demo',
  'documents show whales.md -k papers -w demo',
  'documents chunks whales.md -k papers -w demo',
  'documents explain whales.md -k papers -w demo',
  'filters list papers -w demo',
  'services list -w demo',
  'agents list -w demo',
  'agents templates -w demo',
  'agents tools -w demo',
  'mcp servers list -w demo',
  'jobs list -w demo',
  'keys list -w demo',
  'access principals list -w demo',
  'access policy preview team=$principal.team -w demo',
  'audit list --limit 1 --action api_key.create -w demo',
  'config show',
  'config path',
  'config validate',
  'explain kb_name_taken',
  'version',
  'open',
  'status -w demo',
  // Without a credential, against a runtime without authentication.
  'whoami --local',
  'api GET /api/v1/workspaces?limit=1',
]
/** Commands with a key, against a runtime that requires one. */
const commandsWithKey = [
  'login --with-token',
  'whoami',
  'auth status',
  'auth token',
  'profiles list',
  'logout --all',
]
const rejectedCommand = 'kb show nowhere -w demo'

test('--json output keeps its keys and the types of their values', {
  timeout: 120_000,
}, async () => {
  const sandbox = createSandbox()
  for (const folder of ['work', 'more']) mkdirSync(join(sandbox.home, folder))
  writeFileSync(join(sandbox.home, 'work', 'whales.md'), '# Whales\n\nWhales sing.\n')
  writeFileSync(join(sandbox.home, 'more', 'seals.md'), '# Seals\n\nSeals clap.\n')
  await sandbox.serve()
  const shapes = new Map<string, unknown>()
  for (const line of creatingCommands) shapes.set(line, await shapeFrom(sandbox, line))
  // Limits parallelism for machines with two cores.
  const waiting = [...readingCommands]
  const work = async () => {
    for (let line = waiting.shift(); line; line = waiting.shift())
      shapes.set(line, await shapeFrom(sandbox, line))
  }
  await Promise.all([work(), work()])
  const { sandbox: person, url, key } = await startRuntimeWithKeys()
  for (const line of commandsWithKey) {
    const [verb, ...flags] = line.split(' ')
    const words = verb === 'login' ? [verb, url, ...flags] : [verb!, ...flags]
    shapes.set(line, await shapeFrom(person, words.join(' '), key))
  }
  const { stderr } = await sandbox.wb([...rejectedCommand.split(' '), '--json'])
  const sorted = Object.fromEntries(
    [...creatingCommands, ...readingCommands, ...commandsWithKey].map(line => [line, shapes.get(line)]),
  )
  const all = { ...sorted, [rejectedCommand]: shapeOf(JSON.parse(stderr)) }
  await expect(`${JSON.stringify(all, null, 2)}\n`).toMatchFileSnapshot('./json-shapes.snap.json')
})

async function shapeFrom({ wb }: Sandbox, line: string, input?: string): Promise<unknown> {
  const { stdout, stderr, status } = await wb([...line.split(' '), '--json'], { input })
  expect({ line, status, stderr: status === 0 ? '' : stderr }).toEqual({ line, status: 0, stderr: '' })
  const shape = shapeOf(JSON.parse(stdout))
  // The shape of an empty list is not part of the contract.
  expect({ line, shape }).not.toEqual({ line, shape: [] })
  return shape
}

/** Maps keys to their types. Shapes of array items are deduplicated and sorted, because IDs determine their order. */
function shapeOf(value: unknown): unknown {
  if (value === null) return 'null'
  if (Array.isArray(value))
    return [...new Set(value.map(item => JSON.stringify(shapeOf(item))))].sort().map(text => JSON.parse(text))
  if (typeof value !== 'object') return typeof value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOf(item)]))
}
