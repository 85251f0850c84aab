import { expect, test } from 'vitest'
import { unreliableSteps } from '../fakes/unreliable-steps.ts'
import { chunkPerParagraph, createHostedBase, enqueue, expectNothingLeft, waitForEnd } from './ingest-jobs.ts'

const documentsEach = 30
const maxBatchSize = 4
const dimension = 3
const ndjson = { 'content-type': 'application/x-ndjson' }

/** Creates a text with paragraphs that no other text has. */
function textOf(name: string): string {
  return Array.from({ length: 9 }, (_, at) => `${name}-${at} `.padEnd(90, 'x')).join('\n\n')
}

test('with a provider that fails in turns, every document ends as ready or failed, and nothing is paid for twice', {
  timeout: 120_000,
}, async () => {
  const { wb, base, provider } = await createHostedBase({}, maxBatchSize)
  provider.script(...unreliableSteps(10_000, dimension))
  const fieldsOf = (name: string) => ({
    sourceFilename: name,
    overwriteOnNameConflict: true,
    ...chunkPerParagraph,
  })
  const names = Array.from({ length: documentsEach }, (_, n) => n)
  const sendAll = async (name: (n: number) => string, send: (name: string) => Promise<unknown>) => {
    for (const n of names) await send(name(n))
  }
  const viaJob = async (name: string) =>
    waitForEnd(wb, (await enqueue(wb, base, textOf(name), fieldsOf(name))).job)
  const viaRequest = (name: string) => base.ingest(textOf(name), fieldsOf(name)).catch(() => {})
  const viaBatch = (name: string) =>
    wb.send(`POST ${base.path}/ingest/batch`, { text: textOf(name), ...fieldsOf(name) }, ndjson)
  await Promise.all([
    sendAll(n => `job${n}`, viaJob),
    sendAll(n => `request${n}`, viaRequest),
    sendAll(n => `line${n}`, viaBatch),
  ])
  const rows = await base.documents()
  const failed = rows.filter(({ status }) => status === 'failed')
  const ready = rows.filter(({ status }) => status === 'ready')
  expect(failed.length + ready.length).toBe(rows.length)
  expect(new Set(rows.map(({ sourceFilename }) => sourceFilename)).size).toBe(documentsEach * 3)
  expect(rows).toHaveLength(documentsEach * 3)
  const reason =
    /declares 3 dimensions, but its model returned 4|sent incomplete JSON|responded with status (?:500|503|429)/
  for (const { errorMessage } of failed) expect(errorMessage).toMatch(reason)
  expect(failed.length, 'wrong dimensions are final').toBeGreaterThan(0)
  expect(ready.length).toBeGreaterThan(documentsEach)
  await expectNothingLeft(wb.dataDir)

  // A failure aborts the other request of the ingest, which the provider may have completed.
  const inFlight = failed.length * maxBatchSize
  const paidTwice = () => provider.embedded.length - new Set(provider.embedded).size
  expect(paidTwice()).toBeLessThanOrEqual(inFlight)

  provider.recover()
  const before = provider.embedded.length
  const known = new Set(provider.embedded)
  for (const { sourceFilename } of failed) await viaRequest(sourceFilename!)
  expect((await base.documents()).every(({ status }) => status === 'ready')).toBe(true)
  const repeated = provider.embedded.slice(before).filter(text => known.has(text))
  expect(repeated.length, 'vectors of failed ingests are kept').toBeLessThanOrEqual(inFlight)
  expect(new Set(provider.embedded).size).toBe(documentsEach * 3 * 9)
})
