import { request } from 'node:http'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Document } from '../../src/contract/documents.ts'
import type { Job } from '../../src/contract/jobs.ts'
import { type HttpRuntime, serveOverHttp } from '../harness/http-runtime.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import { open, type TestRuntimeOptions, waitUntil } from '../harness/runtime.ts'
import {
  cancel,
  chunkPerParagraph,
  createHostedBase,
  enqueue,
  jobOf,
  textOf,
  waitForEnd,
} from '../jobs/ingest-jobs.ts'
import { anyText, exactly } from './exactly.ts'
import { document, failure, job, notUuid, unknownId } from './shapes.ts'

interface Place {
  readonly wb: HttpRuntime
  readonly base: Base
  /** Path of the jobs. */
  readonly path: string
}

async function place(options: TestRuntimeOptions = {}): Promise<Place> {
  const wb = await serveOverHttp(await open(options))
  const base = await makeBase(wb)
  return { wb, base, path: `/api/v1/workspaces/${base.params.workspaceId}/jobs` }
}

describe('ingest with async=true', () => {
  test('returns 202 with the job, its location and the pending document', async () => {
    const { wb, base, path } = await place()
    const sent = { text: 'hello', sourceFilename: 'a.txt', metadata: { lang: 'en' } }
    const answer = await wb.send(`POST ${base.path}/ingest?async=true`, sent)
    expect(answer.status, answer.text).toBe(202)
    exactly(answer.body, {
      job: job({ ...base.params }),
      document: document({
        ...base.params,
        status: 'writing',
        sourceFilename: 'a.txt',
        metadata: { lang: 'en' },
        contentHash: anyText,
      }),
      astraQueries: [],
    })
    const made = answer.body as { job: Job; document: Document }
    expect(made.job.documentId).toBe(made.document.documentId)
    expect(answer.headers.get('location')).toBe(`${path}/${made.job.jobId}`)
    exactly((await wb.send(`GET ${base.path}/documents/${made.document.documentId}`)).body, made.document)
  })

  test('returns 200 without a job if the document exists', async () => {
    const { wb, base, path } = await place()
    const { document: there } = await base.ingest('hello', { sourceFilename: 'a.txt' })
    for (const [text, outcome] of [
      ['hello', 'duplicate'],
      ['other', 'name_conflict'],
    ]) {
      const answer = await wb.send(`POST ${base.path}/ingest?async=true`, { text, sourceFilename: 'a.txt' })
      expect([answer.status, answer.headers.get('location')]).toEqual([200, null])
      exactly(answer.body, { document: there, outcome })
    }
    expect((await wb.send(`GET ${path}`)).body).toEqual({ items: [], nextCursor: null })
  })

  test('returns 409 for an existing ID and creates no job', async () => {
    const { wb, base, path } = await place()
    const { documentId } = (await base.ingest('hello')).document
    const answer = await wb.send(`POST ${base.path}/ingest?async=true`, { text: 'other', documentId })
    expect(answer.status).toBe(409)
    exactly(answer.body, failure('conflict'))
    expect((await wb.send(`GET ${path}`)).body.items).toEqual([])
  })

  test.each(['maybe', '', 'TRUE', '1'])('returns 400 for async=%s', async value => {
    const { wb, base } = await place()
    const answer = await wb.send(`POST ${base.path}/ingest?async=${value}`, { text: 'hello' })
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatchObject({
      code: 'validation_error',
      message: expect.stringMatching(/^async:/),
    })
    expect(await base.documents()).toEqual([])
  })

  test('ingests a file with a job', async () => {
    const { wb, base } = await place({ server: true })
    const form = new FormData()
    form.set('file', new File(['The wing flutters.'], 'wing.txt', { type: 'text/plain' }))
    const sent = new Request(`http://localhost${base.path}/ingest/file?async=true`, {
      method: 'POST',
      body: form,
    })
    const answer = await wb.runtime.fetch(sent)
    const body = (await answer.json()) as { job: Job }
    expect(answer.status).toBe(202)
    expect(answer.headers.get('location')).toMatch(new RegExp(`/jobs/${body.job.jobId}$`))
    expect(await waitForEnd(wb, body.job)).toMatchObject({ status: 'succeeded', result: { chunks: 1 } })
    expect(await base.documents()).toMatchObject([{ sourceFilename: 'wing.txt', status: 'ready' }])
  })
})

describe('jobs', () => {
  test('S2.7-03: are listed in pages, newest first, as they are shown individually', async () => {
    const { wb, base, path } = await place()
    const made: Job[] = []
    for (let n = 0; n < 5; n++) made.unshift((await enqueue(wb, base, `text ${n}`)).job)
    const first = await wb.send(`GET ${path}?limit=3`)
    exactly(first.body, { items: made.slice(0, 3), nextCursor: anyText })
    const rest = await wb.send(`GET ${path}?limit=3&cursor=${first.body.nextCursor}`)
    exactly(rest.body, { items: made.slice(3), nextCursor: null })
    exactly((await wb.send(`GET ${path}/${made[0]!.jobId}`)).body, made[0]!)
    const foreign = await place()
    const stolen = await foreign.wb.send(`GET ${foreign.path}?cursor=${first.body.nextCursor}`)
    exactly(stolen.body, failure('invalid_cursor'))
  })

  test('end as documented, completed or cancelled', async () => {
    const { wb, base, path } = await place()
    const [done, stopped] = [await enqueue(wb, base, 'one'), await enqueue(wb, base, 'two')]
    const answer = await wb.send(`POST ${path}/${stopped.job.jobId}/cancel`)
    expect(answer.status).toBe(200)
    exactly(
      answer.body,
      job({ ...stopped.job, status: 'failed', errorMessage: 'cancelled', updatedAt: anyText }),
    )
    await wb.settle()
    exactly(
      (await wb.send(`GET ${path}/${done.job.jobId}`)).body,
      job({
        ...done.job,
        status: 'succeeded',
        processed: 1,
        total: 1,
        result: { chunks: 1 },
        updatedAt: anyText,
      }),
    )
    const again = await wb.send(`POST ${path}/${stopped.job.jobId}/cancel`)
    expect(again.status).toBe(200)
    exactly(again.body, answer.body)
  })

  test('S2.7-03 S7.3-job_not_found: return 404 with hint and docs for an unknown job on each route', async () => {
    const { wb, path } = await place()
    for (const line of [`GET ${path}/ID`, `POST ${path}/ID/cancel`, `GET ${path}/ID/events`]) {
      const missing = await wb.send(line.replace('ID', unknownId))
      expect(missing.status, line).toBe(404)
      exactly(missing.body, failure('job_not_found'))
      const elsewhere = await wb.send(line.replace('ID', unknownId).replace(/[0-9a-f-]{36}/, unknownId))
      expect(elsewhere.status, line).toBe(404)
      exactly(elsewhere.body, failure('workspace_not_found'))
      const malformed = await wb.send(line.replace('ID', notUuid))
      expect(malformed.status, line).toBe(400)
      exactly(malformed.body, failure('validation_error'))
    }
    exactly(
      (await wb.send(`GET ${path.replace(/[0-9a-f-]{36}/, unknownId)}`)).body,
      failure('workspace_not_found'),
    )
  })
})

interface Frame {
  readonly event: string
  readonly data: Job & { status: string }
  readonly id: string
  readonly text: string
}

/** Reads the stream of a job over its own connection. */
function watch({ wb, path }: Place, { jobId }: Job, after?: string) {
  const seen = { text: '', isOver: false, headers: {} as Record<string, unknown>, status: 0 }
  const sent = request(`${wb.url.replace(/\/$/, '')}${path}/${jobId}/events`, {
    headers: after === undefined ? {} : { 'last-event-id': after },
  })
  sent.on('error', () => {})
  sent.on('response', answer => {
    Object.assign(seen, { headers: answer.headers, status: answer.statusCode })
    answer.on('data', part => {
      seen.text += String(part)
    })
    answer.on('close', () => {
      seen.isOver = true
    })
    answer.on('error', () => {})
  })
  sent.end()
  onTestFinished(() => void sent.destroy())
  const frames = (): Frame[] =>
    seen.text
      .split('\n\n')
      .slice(0, -1)
      .filter(text => !text.startsWith(':'))
      .map(text => {
        const [, event, data, id] = /^event: (.*)\ndata: (.*)\nid: (.*)$/.exec(text)!
        return { event: event!, data: JSON.parse(data!), id: id!, text }
      })
  return { seen, frames, over: () => waitUntil(() => seen.isOver), leave: () => sent.destroy() }
}

async function running(): Promise<Place & { job: Job }> {
  const { wb: inner, base, provider } = await createHostedBase()
  const wb = await serveOverHttp(inner)
  const path = `/api/v1/workspaces/${base.params.workspaceId}/jobs`
  provider.script({}, {}, { delayMs: 400 })
  const { job } = await enqueue(wb, base, textOf(7), chunkPerParagraph)
  return { wb, base, path, job }
}

describe('the stream of a job', () => {
  test('begins with the current job, sends each change, and ends with done', async () => {
    const at = await running()
    const { seen, frames, over } = watch(at, at.job)
    await over()
    expect(seen.status).toBe(200)
    expect(seen.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': expect.stringContaining('no-cache'),
    })
    const all = frames()
    const last = await jobOf(at.wb, at.job)
    for (const { event, data, id } of all.slice(0, -1)) {
      expect(event).toBe('job')
      exactly(data, job({ ...at.job, ...data }))
      expect(id).toBe(data.updatedAt)
    }
    expect(all.at(-2)!.data).toEqual(last)
    expect(all.at(-1)).toMatchObject({ event: 'done', data: { status: 'succeeded' }, id: last.updatedAt })
    expect(Object.keys(all.at(-1)!.data)).toEqual(['status'])
    const ids = all.slice(0, -1).map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)].sort())
    expect(all.map(({ data }) => data.processed)).toContain(4)
  })

  test('starts a pending job in a runtime without a running worker', async () => {
    const at = await place()
    const { job: made } = await enqueue(at.wb, at.base, 'text')
    expect(made.status).toBe('pending')
    const { frames, over } = watch(at, made)
    await over()
    expect(frames().at(-1)).toMatchObject({ event: 'done', data: { status: 'succeeded' } })
  })

  test('ends immediately for a finished job, regardless of Last-Event-ID', async () => {
    const { wb, base, path } = await place()
    const { job: made } = await enqueue(wb, base, 'text')
    const { updatedAt } = await cancel(wb, made)
    for (const after of [undefined, made.updatedAt, updatedAt, '2999-01-01T00:00:00.000Z', 'nonsense']) {
      const { frames, over } = watch({ wb, base, path }, made, after)
      await over()
      expect(frames().map(({ event, id }) => [event, id])).toEqual([
        ['job', updatedAt],
        ['done', updatedAt],
      ])
    }
  })

  test('skips events that were received, and sends all for an invalid Last-Event-ID', async () => {
    const { wb: inner, base, provider } = await createHostedBase()
    provider.script({ hang: 'before headers' })
    const at = {
      wb: await serveOverHttp(inner),
      base,
      path: `/api/v1/workspaces/${base.params.workspaceId}/jobs`,
    }
    const { job: made } = await enqueue(at.wb, base, textOf(1), chunkPerParagraph)
    await waitUntil(() => provider.received.length === 1)
    const now = await jobOf(at.wb, made)
    const [seen, unseen] = [watch(at, made, now.updatedAt), watch(at, made, 'nonsense')]
    await waitUntil(() => unseen.frames().length === 1)
    expect(seen.frames()).toEqual([])
    await cancel(at.wb, made)
    await Promise.all([seen.over(), unseen.over()])
    expect(seen.frames().map(({ event }) => event)).toEqual(['job', 'done'])
    expect(unseen.frames().map(({ event }) => event)).toEqual(['job', 'job', 'done'])
  })

  test('supports many readers, and follows a job of another process', async () => {
    const { wb, base, path } = await place()
    const { job: made } = await enqueue(wb, base, textOf(3), chunkPerParagraph)
    const other = await open({ dataDir: wb.dataDir })
    const watchers = Array.from({ length: 20 }, () => watch({ wb, base, path }, made))
    await other.settle()
    await Promise.all(watchers.map(({ over }) => over()))
    for (const { frames } of watchers)
      expect(frames().at(-1)).toMatchObject({ event: 'done', data: { status: 'succeeded' } })
  })

  test('ends without done when the runtime drains', async () => {
    const { wb: inner, base, provider } = await createHostedBase()
    provider.script({ hang: 'before headers' })
    const wb = await serveOverHttp(inner)
    const { job: made } = await enqueue(wb, base, textOf(1), chunkPerParagraph)
    const at = { wb, base, path: `/api/v1/workspaces/${base.params.workspaceId}/jobs` }
    const { frames, over } = watch(at, made)
    await waitUntil(() => provider.received.length === 1 && frames().length > 0)
    await wb.close()
    await over()
    expect(frames().map(({ event }) => event)).not.toContain('done')
  })

  test('always delivers the last event to readers that reconnect', { timeout: 60_000 }, async () => {
    const { wb: inner, base, provider } = await createHostedBase()
    const wb = await serveOverHttp(inner)
    const at = { wb, base, path: `/api/v1/workspaces/${base.params.workspaceId}/jobs` }
    let n = 0
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 8 }), async staysMs => {
        provider.script(...Array.from({ length: 10 }, () => ({ delayMs: 10 })))
        const { job: made } = await enqueue(wb, base, textOf(20, `wing${n++}`), chunkPerParagraph)
        const told: Frame[] = []
        let after: string | undefined
        for (const stayMs of [...staysMs, undefined]) {
          const { frames, over, leave } = watch(at, made, after)
          if (stayMs === undefined) await over()
          else await new Promise(resolve => setTimeout(resolve, stayMs))
          leave()
          told.push(...frames())
          after = told.at(-1)?.id ?? after
        }
        const done = told.filter(({ event }) => event === 'done')
        expect(done.length).toBeGreaterThan(0)
        const jobs = told.filter(({ event }) => event === 'job')
        expect(jobs.at(-1)!.data).toEqual(await jobOf(wb, made))
        const ids = jobs.filter(({ data }) => data.status === 'running').map(({ id }) => id)
        expect(ids, 'none twice and none out of order').toEqual([...new Set(ids)].sort())
      }),
      { numRuns: 15 },
    )
  })
})
