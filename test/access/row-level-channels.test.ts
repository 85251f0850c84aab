import { expect, test } from 'vitest'
import { callMcp, callMcpTool, codeOf, hitsOf, itemsOf, type Send } from './principal-requests.ts'
import {
  ingest,
  missingId,
  openRestrictedWorkspace,
  type RestrictedWorkspace,
} from './restricted-workspace.ts'

/** A workspace in which alice reads. The answers must not depend on the rows of bob. */
interface Asked extends RestrictedWorkspace {
  readonly alice: Send
  /** IDs that exist in all phases: a document of alice, her job, and a saved filter. */
  readonly ids: { readonly document: string; readonly job: string; readonly filter: string }
}

/** Phases of the workspace: rows of bob, which alice cannot see, are added and deleted again. */
const phases = ['before', 'during', 'after'] as const
type Answers = Partial<Record<(typeof phases)[number], unknown>>

const missingJobId = '00000000-0000-4000-8000-000000000001'
const question = 'turbine zeppelin contract'
const searches: readonly object[] = [
  { text: question },
  { text: question, hybrid: false },
  { text: question, lexicalWeight: 1 },
  { text: question, rerank: true },
  { text: question, includeCoverage: true },
  { text: 'turbine zepp', prefix: true },
  { text: 'turbinne secretwort' },
  { text: '"turbine report" zeppelinbob' },
]

/** A response without its request ID. */
async function answerTo(send: Send, line: string, json?: unknown): Promise<string> {
  const { status, text, headers } = await send(line, json)
  return `${status} ${text.replaceAll(headers.get('x-request-id') ?? '', '')}`
}

async function answersTo({ alice }: Asked, requests: readonly [line: string, json?: unknown][]) {
  const answers: string[] = []
  for (const [line, json] of requests) answers.push(await answerTo(alice, line, json))
  return answers
}

/** Returns the pages of a list with two rows each, with their cursors. */
async function pagesOf(send: Send, path: string): Promise<string[]> {
  const pages: string[] = []
  for (let cursor: unknown = null; ; ) {
    const { text, body } = await send(`GET ${path}?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`)
    pages.push(text)
    cursor = body.nextCursor
    if (typeof cursor !== 'string') return pages
  }
}

/** Requests by channel, each through which a hidden row could show. */
const channels: Readonly<Record<string, (asked: Asked) => Promise<unknown>>> = {
  async 'counts of a knowledge base'({ alice, base }) {
    const { embedder, ...fields } = (await alice(`GET ${base}`)).body as { embedder?: { chunks: number } }
    return { ...fields, chunks: embedder?.chunks }
  },
  'pages and cursors of documents': ({ alice, base }) => pagesOf(alice, `${base}/documents`),
  'lines and cursors of an export': async ({ alice, base }) => {
    const { text, headers } = await alice(`GET ${base}/export`)
    return text
      .replaceAll(headers.get('x-request-id') ?? '', '')
      .replaceAll(/createdAt[^,]*|sha256[^}]*|nextCursor.*/g, '')
  },
  'pages and cursors of jobs': ({ alice, workspace }) => pagesOf(alice, `${workspace}/jobs`),
  'pages and cursors of saved filters': ({ alice, base }) => pagesOf(alice, `${base}/filters`),
  'snippets of hits': async ({ alice, base }) => {
    const snippets = []
    for (const search of searches)
      snippets.push(
        hitsOf(await alice(`POST ${base}/search`, search)).map(({ payload }) => payload.chunkText),
      )
    return snippets
  },
  'scores of one knowledge base': asked =>
    answersTo(
      asked,
      searches.map(search => [`POST ${asked.base}/search`, { ...search, topK: 50 }]),
    ),
  'scores of several knowledge bases': asked =>
    answersTo(asked, [[`POST ${asked.workspace}/search`, { text: question }]]),
  'sizes of responses': async ({ alice, base, workspace, ids }) => {
    const sizes = []
    for (const [line, json] of [
      [`GET ${base}/documents`],
      [`GET ${base}/documents/${ids.document}/chunks`],
      [`GET ${base}/documents/${missingId}`],
      [`POST ${base}/search`, { text: question }],
      [`GET ${workspace}/jobs`],
    ] as const) {
      const { text, headers } = await alice(line, json)
      sizes.push([text.length, headers.get('content-length'), [...headers.keys()]])
    }
    return sizes
  },
  'error texts': asked =>
    answersTo(asked, [
      [`GET ${asked.base}/documents?cursor=none`],
      [`GET ${asked.base}/stats`],
      [`POST ${asked.base}/compact`],
      [`POST ${asked.base}/search`, { text: question, filter: { $no: 1 } }],
      [`POST ${asked.base}/search`, { vector: [1] }],
      [`POST ${asked.base}/search`, { text: question, knowledgeFilterId: missingId }],
      [`DELETE ${asked.base}/records/none`],
    ]),
  'job events': async ({ alice, workspace, ids }) => {
    const stream = { accept: 'text/event-stream' }
    return (await alice(`GET ${workspace}/jobs/${ids.job}/events`, undefined, stream)).text
  },
  'sizes in the list of knowledge bases': asked =>
    answersTo(asked, [[`GET ${asked.workspace}/knowledge-bases`]]),
  'values of filters': asked =>
    answersTo(
      asked,
      [
        { team: 'red' },
        { team: 'blue' },
        { team: 'none' },
        { level: { $gte: 0 } },
        { visible_to: 'bob' },
        { $not: { visible_to: '*' } },
      ]
        .map((filter): [string, object] => [`POST ${asked.base}/search`, { text: question, filter }])
        .concat([[`POST ${asked.base}/search`, { text: question, knowledgeFilterId: asked.ids.filter }]]),
    ),
  'audit records': asked =>
    answersTo(
      asked,
      ['document.delete', 'job.claim'].map(action => [`GET ${asked.workspace}/audit?action=${action}`]),
    ),
  async 'policy decisions'({ alice, base, workspace, ids }) {
    const path = `${workspace}/audit/decisions?principalId=alice`
    const [newest] = itemsOf(await alice(`GET ${path}&limit=1`))
    for (const line of [
      `GET ${workspace}/jobs`,
      `GET ${workspace}/jobs/${missingJobId}`,
      `GET ${base}/documents/${ids.document}`,
      `GET ${base}/documents/${missingId}`,
      `DELETE ${base}/records/none`,
    ])
      await alice(line)
    const decisions = itemsOf(await alice(`GET ${path}&limit=20`))
    const added = decisions.slice(
      0,
      decisions.findIndex(({ decisionId }) => decisionId === newest!.decisionId),
    )
    return added.map(({ decisionId: _, ts: __, ...fields }) => fields)
  },
  'MCP tools and resources': async ({ alice, workspace, knowledgeBaseId }) => [
    await callMcpTool(alice, workspace, 'list_knowledge_bases'),
    await callMcpTool(alice, workspace, 'list_documents', { knowledgeBaseId, limit: 3 }),
    await callMcpTool(alice, workspace, 'search_kb', { knowledgeBaseId, text: question }),
    await callMcp(alice, workspace, 'resources/list'),
  ],
}

const textOf = (n: number, name: string) =>
  `The turbine report ${n} of ${name} mentions the zeppelin${name} contract and its number${n}.`

async function enqueue(send: Send, { base }: RestrictedWorkspace, body: object): Promise<string> {
  return ((await send(`POST ${base}/ingest?async=true`, body)).body.job as { jobId: string }).jobId
}

/** Adds rows that alice can see: enough public texts that the embedder is fitted, and rows of her own. */
async function addVisible(opened: RestrictedWorkspace): Promise<Asked> {
  const { as, base, operator } = opened
  const alice = as('alice')
  for (let n = 0; n < 12; n++) {
    const metadata = { team: n % 2 === 0 ? 'red' : 'green', level: n }
    await ingest(operator, base, { text: textOf(n, 'all'), visibleTo: ['*'], metadata })
  }
  const document = await ingest(alice, base, { text: textOf(1, 'alice'), sourceFilename: 'report.md' })
  await alice(`POST ${base}/records`, { records: [{ id: 'mine', text: 'A turbine record of alice.' }] })
  const job = await enqueue(alice, opened, { text: textOf(2, 'alice') })
  await opened.wb.settle()
  const made = await alice(`POST ${base}/filters`, { name: 'red', filter: { team: 'red' } })
  return { ...opened, alice, ids: { document, job, filter: String(made.body.knowledgeFilterId) } }
}

/** Adds rows of bob: the same and other texts and file names, records and jobs. Returns a function that deletes them. */
async function addHidden(opened: Asked): Promise<() => Promise<void>> {
  const { as, base } = opened
  const bob = as('bob')
  for (let n = 0; n < 8; n++)
    await ingest(bob, base, {
      text: `${textOf(n, 'bob')} A secretword, turbinne.`,
      metadata: { team: 'blue', level: 100 + n, title: 'zeppelin contract' },
      sourceFilename: `${n}.md`,
    })
  await ingest(bob, base, { text: textOf(1, 'alice'), sourceFilename: 'report.md' })
  await bob(`POST ${base}/records`, {
    records: [{ id: 'theirs', text: 'A turbine zeppelin contract record of bob.' }],
  })
  await enqueue(bob, opened, { text: textOf(9, 'bob') })
  await opened.wb.settle()
  return async () => {
    const documentIds = itemsOf(await bob(`GET ${base}/documents`))
      .filter(({ ownerPrincipalId }) => ownerPrincipalId === 'bob')
      .map(({ documentId }) => documentId)
    expect(documentIds).toHaveLength(10)
    await bob(`POST ${base}/documents/bulk-delete`, { documentIds })
    await bob(`DELETE ${base}/records/theirs`)
  }
}

let allAnswers: Promise<Record<string, Answers>> | undefined

/** Asks everything in each phase, once for all tests of this file. */
async function askInAllPhases(): Promise<Record<string, Answers>> {
  const asked = await addVisible(await openRestrictedWorkspace())
  const answers: Record<string, Answers> = {}
  let deleteHidden = async () => {}
  for (const phase of phases) {
    if (phase === 'during') deleteHidden = await addHidden(asked)
    if (phase === 'after') await deleteHidden()
    await asked.wb.settle()
    for (const [name, ask] of Object.entries(channels)) {
      answers[name] ??= {}
      answers[name][phase] = await ask(asked)
    }
  }
  return answers
}

test.each(Object.keys(channels))('%s do not depend on hidden rows', async name => {
  allAnswers ??= askInAllPhases()
  const { before, during, after } = (await allAnswers)[name]!
  expect(JSON.stringify(before).length).toBeGreaterThan(10)
  expect(during).toEqual(before)
  expect(after).toEqual(before)
})

test('404 and 403: a hidden row is answered as a missing one', async () => {
  const opened = await openRestrictedWorkspace()
  const { as, base, workspace, knowledgeBaseId } = opened
  const [alice, bob] = [as('alice'), as('bob')]
  const document = await ingest(bob, base, { text: 'A turbine of bob.' })
  const job = await enqueue(bob, opened, { text: 'Another turbine of bob.' })
  await bob(`POST ${base}/records`, { records: [{ id: document, text: 'A turbine record of bob.' }] })
  const requests: readonly [line: string, json?: unknown][] = [
    [`GET ${base}/documents/ID`],
    [`GET ${base}/documents/ID/chunks`],
    [`GET ${base}/documents/ID/explain`],
    [`PATCH ${base}/documents/ID`, { visibleTo: ['*'] }],
    [`DELETE ${base}/documents/ID`],
    [`POST ${base}/documents/bulk-delete`, { documentIds: ['ID'] }],
    [`DELETE ${base}/records/ID`],
    [`GET ${workspace}/jobs/JOB`],
    [`GET ${workspace}/jobs/JOB/events`],
    [`POST ${workspace}/jobs/JOB/cancel`],
  ]
  for (const [line, json] of requests) {
    const answerFor = async (documentId: string, jobId: string) => {
      const insert = (text: string) => text.replace('ID', documentId).replace('JOB', jobId)
      const body = json && JSON.parse(insert(JSON.stringify(json)))
      const answer = await answerTo(alice, insert(line), body)
      return answer.replaceAll(documentId, 'ID').replaceAll(jobId, 'JOB')
    }
    expect(await answerFor(document, job), line).toBe(await answerFor(missingId, missingJobId))
  }
  for (const name of ['get_document', 'delete_document']) {
    const answerFor = async (documentId: string) =>
      (await callMcpTool(alice, workspace, name, { knowledgeBaseId, documentId })).replaceAll(
        documentId,
        'ID',
      )
    expect(await answerFor(document), name).toBe(await answerFor(missingId))
  }
  const uri = (documentId: string) =>
    `workbase://${workspace.split('/').at(-1)}/kb/${knowledgeBaseId}/documents/${documentId}`
  const readAs = async (documentId: string) =>
    JSON.stringify(await callMcp(alice, workspace, 'resources/read', { uri: uri(documentId) }))
  expect((await readAs(document)).replaceAll(document, 'ID')).toBe(
    (await readAs(missingId)).replaceAll(missingId, 'ID'),
  )
  expect((await bob(`GET ${base}/documents/${document}`)).status).toBe(200)
  expect(codeOf(await alice(`GET ${base}/documents/${document}`))).toBe('document_not_found')
})

test('cursors do not contain the numbers of rows, which would count the hidden rows between two pages', async () => {
  const { as, base } = await openRestrictedWorkspace()
  const [alice, bob] = [as('alice'), as('bob')]
  for (const [n, send] of [alice, bob, bob, alice, alice].entries())
    await send(`POST ${base}/documents`, { sourceFilename: `${n}.md` })
  const cursors: string[] = []
  for (let cursor = ''; ; ) {
    const { body } = await alice(`GET ${base}/documents?limit=1${cursor && `&cursor=${cursor}`}`)
    if (body.nextCursor === null) break
    cursor = String(body.nextCursor)
    cursors.push(cursor)
  }
  expect(cursors).toHaveLength(2)
  expect(cursors[0]).toHaveLength(cursors[1]!.length)
  for (const cursor of cursors)
    expect(() => JSON.parse(Buffer.from(cursor, 'base64url').toString())).toThrow()
})

test('audit records that name rows are visible to their subject, and to those who manage access', async () => {
  const { as, base, workspace, operator } = await openRestrictedWorkspace()
  const [alice, bob] = [as('alice'), as('bob')]
  const ids = await Promise.all(
    [alice, bob].map(send => ingest(send, base, { text: 'A turbine.', metadata: { title: 'Turbine' } })),
  )
  for (const [at, send] of [alice, bob].entries()) await send(`DELETE ${base}/documents/${ids[at]}`)
  const deletedIn = async (send: Send) =>
    itemsOf(await send(`GET ${workspace}/audit?action=document.delete`))
      .map(({ details }) => (details as { documentId: string }).documentId)
      .sort()
  expect(await deletedIn(alice)).toEqual([ids[0]])
  expect(await deletedIn(bob)).toEqual([ids[1]])
  expect(await deletedIn(operator)).toEqual([...ids].sort())
})

test('an MCP batch stops when its key is revoked', async () => {
  let duringSearch: (() => Promise<unknown>) | undefined
  const { wb, workspace, base, knowledgeBaseId, operator, as } = await openRestrictedWorkspace({
    content: store => ({
      ...store,
      async read(...query) {
        const run = duringSearch
        duringSearch = undefined
        await run?.()
        return store.read(...query)
      },
    }),
  })
  const documentId = await ingest(as('bob'), base, { text: 'The zeppelin costs 4711 pounds.' })
  const key = { label: 'leaver', role: 'editor', principalId: 'bob' }
  const { body } = await operator(`POST ${workspace}/api-keys`, key)
  const { keyId } = body.key as { keyId: string }
  duringSearch = () => operator(`DELETE ${workspace}/api-keys/${keyId}`)
  const calls = [
    ['search_kb', { knowledgeBaseId, text: 'zeppelin' }],
    ['search_kb', { knowledgeBaseId, text: 'zeppelin' }],
    ['delete_document', { knowledgeBaseId, documentId }],
  ].map(([name, args], id) => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args },
  }))
  const { text } = await wb.send(`POST ${workspace}/mcp`, calls, {
    authorization: `Bearer ${body.plaintext}`,
    accept: 'application/json, text/event-stream',
  })
  expect(text.split('\n').filter(line => line.includes('4711'))).toHaveLength(1)
  expect((await as('bob')(`GET ${base}/documents/${documentId}`)).status).toBe(200)
})
