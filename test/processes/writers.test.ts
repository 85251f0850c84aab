import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { newId } from '../../src/base/id.ts'
import { programPath } from '../harness/program.ts'

const processes = 4
const writers = 8
const timeout = 120_000

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

type Ask = (line: string, json?: unknown) => Promise<Answer>

/** A runtime in a child process. */
async function start(dataDir: string): Promise<{ ask: Ask; stop(): Promise<void> }> {
  const child = fork(programPath('runtime/process'), [dataDir])
  const ended = once(child, 'exit')
  await once(child, 'message')
  const waiting = new Map<number, (answer: Answer) => void>()
  child.on('message', (answer: Answer & { id: number }) => waiting.get(answer.id)!(answer))
  let asked = 0
  return {
    ask: (line, json) =>
      new Promise(resolve => {
        const id = asked++
        waiting.set(id, resolve)
        child.send({ id, line, json })
      }),
    async stop() {
      child.disconnect()
      await ended
    },
  }
}

/** Eight writers, two in each of four processes, on one data directory. */
let everyone: Ask[]
let ask: Ask

beforeAll(async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'wb-writers-'))
  const runtimes = await Promise.all(Array.from({ length: processes }, () => start(dataDir)))
  everyone = Array.from({ length: writers }, (_, n) => runtimes[n % processes]!.ask)
  ask = everyone[0]!
  return async () => {
    await Promise.all(runtimes.map(({ stop }) => stop()))
    rmSync(dataDir, { recursive: true, force: true })
  }
})

/** Creates a workspace and returns its path. */
async function workspace(): Promise<string> {
  const { body } = await ask('POST /api/v1/workspaces', { name: `shared ${newId()}` })
  return `/api/v1/workspaces/${body.workspaceId}`
}

function statuses(answers: readonly Answer[]): number[] {
  return answers.map(({ status }) => status).sort()
}

test('names stay unique when many writers create them', { timeout }, async () => {
  const W = await workspace()
  for (let round = 0; round < 10; round++) {
    const [path, code] =
      round % 2 === 0
        ? [`${W}/knowledge-bases`, 'kb_name_taken']
        : ['/api/v1/workspaces', 'workspace_name_conflict']
    const answers = await Promise.all(everyone.map(each => each(`POST ${path}`, { name: `name${round}` })))
    expect(statuses(answers)).toEqual([201, ...Array(writers - 1).fill(409)])
    const codes = answers
      .filter(({ status }) => status === 409)
      .map(({ body }) => (body.error as { code: string }).code)
    expect(new Set(codes), 'a name that is looked up and one that is refused by the store').toEqual(
      new Set([code]),
    )
  }
  const { body } = await ask(`GET ${W}/knowledge-bases`)
  expect((body.items as unknown[]).length).toBe(5)
})

test('only one workspace gets a database', { timeout }, async () => {
  for (let round = 0; round < 5; round++) {
    const url = `https://db${round}.example.com`
    const answers = await Promise.all(
      everyone.map((each, n) =>
        each('POST /api/v1/workspaces', { name: `w${round}-${n}`, kind: 'astra', url }),
      ),
    )
    expect(statuses(answers)).toEqual([201, ...Array(writers - 1).fill(409)])
  }
})

/** Fields of one row, each of which is changed by one writer. */
const fields = [
  'name',
  'description',
  'modelName',
  'modelVersion',
  'engine',
  'provider',
  'endpointPath',
  'credentialRef',
]
const shapedValue: Record<string, (n: number) => string> = {
  endpointPath: n => `/v${n}`,
  credentialRef: n => `env:KEY_${n}`,
}

test('no update is lost when eight writers change different fields of one row', { timeout }, async () => {
  const W = await workspace()
  const made = await ask(`POST ${W}/llm-services`, { name: 'shared', provider: 'p', modelName: 'm' })
  expect(made.status).toBe(201)
  const path = `${W}/llm-services/${made.body.llmServiceId}`
  for (let round = 0; round < 10; round++) {
    const value = (field: string) => shapedValue[field]?.(round) ?? `${field} ${round}`
    const patches = everyone.map((each, n) => each(`PATCH ${path}`, { [fields[n]!]: value(fields[n]!) }))
    expect(new Set(statuses(await Promise.all(patches)))).toEqual(new Set([200]))
    const { body } = await ask(`GET ${path}`)
    expect(Object.fromEntries(fields.map(field => [field, body[field]]))).toEqual(
      Object.fromEntries(fields.map(field => [field, value(field)])),
    )
  }
})

test('concurrent creates, changes and deletes never fail because the store is busy', {
  timeout,
}, async () => {
  const W = await workspace()
  const worked = await Promise.all(
    everyone.map(async (each, n) => {
      const answers: Answer[] = []
      for (let round = 0; round < 25; round++) {
        const made = await each(`POST ${W}/chunking-services`, { name: `s${n}-${round}`, engine: 'workbase' })
        const path = `${W}/chunking-services/${made.body.chunkingServiceId}`
        answers.push(made, await each(`PATCH ${path}`, { description: 'changed' }))
        if (round % 2 === 1) answers.push(await each(`DELETE ${path}`))
      }
      return answers
    }),
  )
  expect(new Set(statuses(worked.flat()))).toEqual(new Set([200, 201, 204]))
  const { body } = await ask(`GET ${W}/chunking-services?limit=200`)
  const kept = (body.items as { name: string; description: string }[]).filter(({ name }) => /^s\d/.test(name))
  expect(kept.length).toBe(writers * 13)
  expect(new Set(kept.map(({ description }) => description))).toEqual(new Set(['changed']))
})

test('twenty concurrent ingests of one text create one document', { timeout }, async () => {
  const W = await workspace()
  const { body } = await ask(`POST ${W}/knowledge-bases`, { name: 'papers' })
  const base = `${W}/knowledge-bases/${body.knowledgeBaseId}`
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      everyone[n % writers]!(`POST ${base}/ingest`, { text: 'The wing flutters.' }),
    ),
  )
  expect(statuses(answers)).toEqual([...Array(19).fill(200), 201])
  const ids = answers.map(answer => (answer.body.document as { documentId: string }).documentId)
  expect(new Set(ids).size).toBe(1)
  const listed = await ask(`GET ${base}/documents`)
  expect((listed.body.items as unknown[]).length).toBe(1)
})
