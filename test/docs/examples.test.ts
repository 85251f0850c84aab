import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { committedManifest } from '../../scripts/manifest.mjs'
import { endServers, reader } from './place.ts'

const { commands } = JSON.parse(committedManifest()) as { commands: Record<string, { examples: string[] }> }

const conversation = [
  'wb conversations show "Refund window" || wb api POST',
  '/api/v1/workspaces/$(wb workspaces list --limit 1 | cut -f1)/agents/$(wb agents list --limit 1 | cut -f1)/conversations',
  `-d '{"title": "Refund window"}'`,
].join(' ')

const job = 'date +%N | wb kb ingest handbook - --name job.txt --async --no-wait'

/** What an example of a help text needs besides the knowledge bases, or takes away from the next. */
const before: Record<string, string> = {
  'conversations show': conversation,
  'conversations delete': conversation,
  'documents show': 'wb kb search papers flow',
  'documents chunks': 'wb kb search papers flow',
  'documents delete': 'echo Scopes > docs/guide/scopes.md; wb kb ingest handbook docs --no-wait',
  'kb create': 'wb kb delete handbook --yes; wb kb delete papers --yes',
  'workspaces update': 'wb workspaces update handbooks --name demo',
  'workspaces create': 'wb workspaces delete demo --yes',
  'workspaces delete': 'wb workspaces create scratch',
  'jobs show': job,
  'jobs watch': job,
  'jobs cancel': job,
  'kb search': 'wb kb delete papers --yes',
  'filters show':
    'wb filters show english -k handbook || wb filters create english -k handbook --where lang=en',
  'filters update':
    'wb filters show english -k handbook || wb filters create english -k handbook --where lang=en',
  'filters delete':
    'wb filters show english -k handbook || wb filters create english -k handbook --where lang=en',
  api: 'wb workspaces delete demo --yes',
  add: 'wb kb delete papers --yes',
  open: 'wb serve',
  'access principals create': 'wb access principals delete alice --yes',
  'access principals show': 'wb access principals create alice',
  'access principals update': 'wb access principals create alice',
  'access principals delete': 'wb access principals create alice',
  'services disallow': 'wb services allow env:VLLM_KEY --host models.example.com:8443 --as-operator',
  'mcp servers show': 'wb mcp servers show tools || wb mcp servers add tools http://127.0.0.1:9/mcp',
  'mcp servers update': 'wb mcp servers show tools || wb mcp servers add tools http://127.0.0.1:9/mcp',
  'mcp servers remove': 'wb mcp servers show tools || wb mcp servers add tools http://127.0.0.1:9/mcp',
  trust: 'echo version: 1 > workbase.yaml; wb trust',
  login: 'echo wb_live_any > ci.key',
  'profiles use': 'wb profiles add work',
  'profiles rename': 'wb profiles add work',
  'profiles remove': 'wb profiles add work',
  'keys show': 'wb keys show ci || wb keys create ci',
  'keys rotate': 'wb keys show ci || wb keys create ci; wb keys show deploy || wb keys create deploy',
  'keys revoke': 'wb keys show ci || wb keys create ci',
}

/** Elsewhere than here: another runtime, the network, a server of somebody else's. */
const elsewhere = /https:\/\/|^wb mcp servers test/
/** Asks first, and here is nobody to answer. */
const asks = /^wb (?:\w+ )+?(?:delete|revoke|remove) (?!.*--yes)/
/** Goes on until somebody ends it. */
const endless = /^wb audit follow/

/** Commands that leave everything as it is, and so may follow each other. */
const reads =
  /(?:list|show|chunks|search|path|validate|explain|version|templates|tools|preview|audit|test|autocomplete)$/

const all = Object.entries(commands)
const groups: [name: string, ids: string[]][] = [
  ['commands that change nothing', all.map(([id]) => id).filter(id => reads.test(id))],
  ...all.filter(([id]) => !reads.test(id)).map(([id]): [string, string[]] => [`wb ${id}`, [id]]),
]

test.each(groups)('%s: the examples of the help work as typed', { timeout: 120_000 }, async (_name, ids) => {
  const { env, folder, home } = await reader()
  onTestFinished(() => endServers(home))
  if (ids.some(id => id.startsWith('config:'))) writeFileSync(join(folder, 'workbase.yaml'), 'version: 1\n')
  mkdirSync(join(folder, 'notes'))
  writeFileSync(join(folder, 'notes', 'day.md'), 'Today.\n')
  writeFileSync(join(folder, 'corpus.jsonl'), '{"_id": "1", "title": "Wings", "text": "of aircraft"}\n')
  const run = (line: string) => spawnSync('bash', ['-c', line], { cwd: folder, env, encoding: 'utf8' })
  // Many commands in turn are quicker beside a server, and what they print is the same.
  if (ids.length > 1) expect(run('cd && wb serve').status).toBe(0)
  for (const id of ids)
    for (const example of commands[id]!.examples.filter(line => !elsewhere.test(line))) {
      const preparation = before[id.replaceAll(':', ' ')]
      if (preparation) run(preparation)
      const line = example
        .replace(/^wb serve --port 0/, 'wb serve --data-dir other')
        .replace(endless, 'timeout --preserve-status --signal INT 2 $&')
      const { status, stderr } = run(line)
      expect(status, `${example}\n${stderr}`).toBe(asks.test(example) ? 2 : 0)
    }
})
