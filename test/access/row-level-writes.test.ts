import { describe, expect, test } from 'vitest'
import { waitUntil } from '../harness/runtime.ts'
import { codeOf, hitsOf, itemsOf } from './principal-requests.ts'
import { ingest, openRestrictedWorkspace } from './restricted-workspace.ts'

test('a batch that overwrites by file name does not touch a hidden document', async () => {
  const { as, base } = await openRestrictedWorkspace()
  const [alice, bob] = [as('alice'), as('bob')]
  const hidden = await ingest(bob, base, { text: 'A turbine of bob.', sourceFilename: 'a.md' })
  const mine = await ingest(alice, base, { text: 'A turbine of alice.', sourceFilename: 'a.md' })
  const sendLine = async (line: object) => {
    const named = { sourceFilename: 'a.md', overwriteOnNameConflict: true, ...line }
    const media = { 'content-type': 'application/x-ndjson' }
    return (await alice(`POST ${base}/ingest/batch`, named, media)).text
  }
  for (const line of [
    { text: 'A new turbine.' },
    { text: 'A turbine of bob.', visibleTo: ['alice'] },
    { text: 'Another turbine.', visibleTo: ['alice'], ownerPrincipalId: 'bob' },
  ]) {
    const outcome = await sendLine(line)
    expect(JSON.parse(outcome)).toMatchObject({ line: 1, status: 201 })
    expect(outcome).not.toContain(hidden)
  }
  expect((await bob(`GET ${base}/documents/${hidden}/chunks`)).body).toMatchObject([
    { text: 'A turbine of bob.' },
  ])
  expect((await alice(`GET ${base}/documents/${mine}`)).status).toBe(404)
})

test('a stream of a job ends when its document is hidden, and the job stores the chunks hidden', async () => {
  let resumeJob = () => {}
  const held = new Promise<void>(resolve => {
    resumeJob = resolve
  })
  const opened = await openRestrictedWorkspace({
    content: store => ({
      ...store,
      async write(changes, rows) {
        if (changes.some(({ op }) => op === 'upsert')) await held
        return store.write(changes, rows)
      },
    }),
  })
  const { as, base, workspace, follow } = opened
  const [alice, bob] = [as('alice'), as('bob')]
  const body = { text: 'A turbine of bob.', visibleTo: ['alice', 'bob'] }
  const made = (await bob(`POST ${base}/ingest?async=true`, body)).body as {
    job: { jobId: string }
    document: { documentId: string }
  }
  const path = `${workspace}/jobs/${made.job.jobId}/events`
  const events: string[] = []
  const reading = (async () => {
    for await (const { event } of follow('alice', path)) events.push(event)
  })()
  await waitUntil(() => events.length > 0)
  const document = `${base}/documents/${made.document.documentId}`
  expect((await bob(`PATCH ${document}`, { visibleTo: ['bob'] })).status).toBe(200)
  await reading
  expect(events).not.toContain('done')
  resumeJob()
  const last: object[] = []
  for await (const { event, data } of follow('bob', path)) if (event === 'done') last.push(data)
  expect(last).toEqual([{ status: 'succeeded' }])
  const hitIds = async (send: typeof alice) =>
    hitsOf(await send(`POST ${base}/search`, { text: 'turbine' })).map(({ id }) => id)
  expect(await hitIds(bob)).toHaveLength(1)
  expect(await hitIds(alice)).toEqual([])
})

describe('an ingest does not replace a hidden record that has the ID of a chunk', () => {
  const documentId = '11111111-1111-4111-8111-111111111111'

  async function openWithRecord() {
    const opened = await openRestrictedWorkspace()
    const bob = opened.as('bob')
    const records = [{ id: `${documentId}:0`, text: 'A turbine record of bob.' }]
    expect((await bob(`POST ${opened.base}/records`, { records })).status).toBe(200)
    const textsOfBob = async () =>
      hitsOf(await bob(`POST ${opened.base}/search`, { text: 'turbine' })).map(
        ({ payload }) => payload.chunkText,
      )
    return { ...opened, alice: opened.as('alice'), textsOfBob }
  }

  test('immediately', async () => {
    const { base, alice, textsOfBob } = await openWithRecord()
    const refused = await alice(`POST ${base}/ingest`, { documentId, text: 'A turbine of alice.' })
    expect([refused.status, codeOf(refused)]).toEqual([409, 'conflict'])
    expect(itemsOf(await alice(`GET ${base}/documents`))).toEqual([])
    expect(await textsOfBob()).toEqual(['A turbine record of bob.'])
  })

  test('in a job', async () => {
    const { wb, workspace, base, alice, textsOfBob } = await openWithRecord()
    await alice(`POST ${base}/ingest?async=true`, { documentId, text: 'A turbine of alice.' })
    await wb.settle()
    expect(itemsOf(await alice(`GET ${workspace}/jobs`))).toMatchObject([{ status: 'failed' }])
    expect(await textsOfBob()).toEqual(['A turbine record of bob.'])
  })
})
