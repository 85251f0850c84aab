import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { committedManifest } from '../../scripts/manifest.mjs'
import { createSandbox, type Sandbox } from '../commands/sandbox.ts'
import { imageBytes } from '../harness/images.ts'
import { createReaderSandbox, endServers } from './reader-sandbox.ts'

const { commands } = JSON.parse(committedManifest()) as { commands: Record<string, { examples: string[] }> }

const conversation = [
  'wb conversations show "Refund window" || wb api POST',
  '/api/v1/workspaces/$(wb workspaces list --limit 1 | cut -f1)/agents/$(wb agents list --limit 1 | cut -f1)/conversations',
  `-d '{"title": "Refund window"}'`,
].join(' ')

const job = 'date +%N | wb kb ingest handbook - --name job.txt --async --no-wait'

const release = 'wb services allow env:VLLM_KEY --host models.example.com:8443 --as-operator'

/** A document, and files with a policy and with test cases. */
const accessFiles = [
  'echo Plan > plan.md; wb kb ingest handbook plan.md --no-wait',
  `echo "team = \\$principal.team" > new.policy; cp new.policy team.policy`,
  `echo "cases: [{ principal: ann, document: {}, expect: deny }]" > cases.yaml`,
].join('; ')

/** A file of ten questions, and two results. */
const questions = [
  `for n in $(seq 10); do echo "- { question: rotate keys $n, answers: [keys.md] }"; done > questions.yaml`,
  'wb eval run questions.yaml --kb handbook --json > before.json',
  'cp before.json after.json',
].join('; ')

/** Setup commands by topic command or by single example. They run before the first example, or before that example. */
const setupCommands: Record<string, string> = {
  'conversations show': conversation,
  'conversations delete': conversation,
  'conversations rename': conversation,
  'conversations export': conversation,
  'documents show': 'wb kb search papers flow',
  'documents chunks': 'wb kb search papers flow',
  'documents explain': 'wb kb search papers flow',
  'documents delete': 'echo Scopes > docs/guide/scopes.md; wb kb ingest handbook docs --no-wait',
  'documents restore': 'wb documents delete guide/keys.md --kb handbook --yes',
  'wb documents restore guide/keys.md --kb handbook': 'wb documents delete guide/keys.md --kb handbook --yes',
  'kb import': 'wb kb export handbook handbook.wbkb; wb kb delete handbook --yes',
  'wb kb context handbook guides --remove': 'wb kb context handbook guides guides --no-reindex',
  'kb reindex': [
    'wb services create large-chunks --preset recursive-char-500',
    'wb services create openai --type embedding --provider mock --model mock --dimension 8',
  ].join('; '),
  'kb sync': 'wb kb delete handbook --yes',
  restore: 'wb backup workbase.tar.gz',
  'kb create': 'wb kb delete handbook --yes; wb kb delete papers --yes',
  'wb workspaces update demo --rlac': 'wb workspaces update handbooks --name demo',
  'workspaces create': 'wb workspaces delete demo --yes',
  'workspaces delete': 'wb workspaces create scratch',
  'jobs show': job,
  'jobs watch': job,
  'jobs cancel': job,
  'wb jobs cancel $(wb jobs list --limit 1 | cut -f1) --json': job,
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
  'access explain': accessFiles,
  'access who': accessFiles,
  'access what': accessFiles,
  'access diff': accessFiles,
  'access test': accessFiles,
  'access drill': 'wb workspaces update handbooks --name demo; wb workspaces update demo --rlac',
  'kb update': accessFiles,
  'eval run': questions,
  'eval compare': questions,
  'eval tune': questions,
  'services disallow': release,
  'wb services disallow env:VLLM_KEY --host models.example.com:8443 --as-operator': release,
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

/** Examples that need another runtime, the network or another server. */
const needsOtherSystems = /https:\/\/|^wb mcp servers (?:test|review)/
/** Examples that need a terminal, a program at the other end of a pipe, or a model. */
const isInteractive = /^wb (?:playground|mcp serve|eval generate|(?:agents )?chat)/
/** Examples that need onnxruntime-node, which is not installed with the package. */
const needsNativeRuntime = /^wb models add/
/** Examples that ask about a time before the knowledge base existed. */
const needsHistory = / --at (?:\d+d|\d{4}-)/
/** Examples that ask for confirmation, which fails without a terminal. */
const needsConfirmation = /^wb (?:\w+ )+?(?:delete|revoke|remove) (?!.*--yes)|^wb restore workbase\.tar\.gz$/
/** Examples that run until they are interrupted. */
const endless = /^wb (?:audit follow|kb sync .*--watch)/

/** Commands that change nothing, so they can share a sandbox. */
const changesNothing =
  /(?:list|show|chunks|search|path|validate|explain|version|templates|tools|preview|audit|test|autocomplete)$/

const ids = Object.keys(commands)

/** Commands that can share a sandbox, because each leaves what the next one needs, or has setup commands. */
const canShareSandbox =
  /^(?:access(?!:drill)|conversations|eval|filters|jobs|mcp|services)\b|^agents:(?:create|update)|^(?:audit:follow|auth:status|documents:update|kb:adoptable|kb:update|keys:create|keys:rotate|status|whoami)$/

/** Groups of commands that share a server, which is faster. Their output does not depend on it. */
const sharedGroups: [name: string, ids: string[]][] = [
  ['commands that change nothing', ids.filter(id => changesNothing.test(id))],
  [
    'commands that leave the others alone',
    ids.filter(id => !changesNothing.test(id) && canShareSandbox.test(id)),
  ],
]
const separateIds = ids.filter(id => !sharedGroups.some(([, others]) => others.includes(id)))

interface Machine {
  run(line: string): { status: number | null; stderr: string }
}

/** Creates a reader's sandbox with the other files of the examples: a configuration file, notes and a corpus. */
async function createMachine(sandbox: Sandbox, { configured }: { configured: boolean }): Promise<Machine> {
  const { env, folder } = await createReaderSandbox(sandbox)
  if (configured) writeFileSync(join(folder, 'workbase.yaml'), 'version: 1\n')
  mkdirSync(join(folder, 'notes'))
  writeFileSync(join(folder, 'notes', 'day.md'), 'Today.\n')
  writeFileSync(join(folder, 'corpus.jsonl'), '{"_id": "1", "title": "Wings", "text": "of aircraft"}\n')
  writeFileSync(join(folder, 'screenshot.png'), imageBytes())
  return { run: line => spawnSync('bash', ['-c', line], { cwd: folder, env, encoding: 'utf8' }) }
}

function typeExamples({ run }: Machine, id: string): void {
  const prepare = (key: string) => setupCommands[key] && run(setupCommands[key])
  prepare(id.replaceAll(':', ' '))
  for (const example of commands[id]!.examples.filter(
    line =>
      !needsOtherSystems.test(line) &&
      !isInteractive.test(line) &&
      !needsNativeRuntime.test(line) &&
      !needsHistory.test(line),
  )) {
    prepare(example)
    const line = example
      .replace(/^wb serve --port 0/, 'wb serve --data-dir other')
      .replace(endless, 'timeout --foreground --preserve-status --signal INT 2 $&')
    const { status, stderr } = run(line)
    expect(status, `${example}\n${stderr}`).toBe(needsConfirmation.test(example) ? 2 : 0)
  }
}

const timeout = 120_000

describe.each(sharedGroups)('%s', (_name, members) => {
  const sandbox = createSandbox(afterAll)
  afterAll(() => endServers(sandbox.home))
  let shared: Machine
  beforeAll(async () => {
    shared = await createMachine(sandbox, { configured: members.some(id => id.startsWith('config:')) })
    expect(shared.run('cd && wb serve').status).toBe(0)
  })

  test.each(members)('wb %s: the examples of the help work as typed', { timeout }, id =>
    typeExamples(shared, id),
  )
})

test.each(separateIds)('wb %s: the examples of the help work as typed', { timeout }, async id => {
  const sandbox = createSandbox()
  onTestFinished(() => endServers(sandbox.home))
  typeExamples(await createMachine(sandbox, { configured: false }), id)
})
