import * as docx from 'docx'
import { expect, test } from 'vitest'
import { audit } from '../../src/contract/audit.ts'
import { documents } from '../../src/contract/documents.ts'
import { jobs } from '../../src/contract/jobs.ts'
import type { UploadedTestFile } from '../fixtures/runtime/process.ts'
import { pdf } from '../formats/files.ts'
import { baseIn } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'
import { createHostedBase, expectNothingLeft } from '../jobs/ingest-jobs.ts'
import { everyPage, type KillableServer, startKillableServer } from './killable-server.ts'

/** About two seconds each; `WB_TEST_KILLS=200` runs a longer test. */
const kills = Number(process.env.WB_TEST_KILLS ?? 20)
const filesMax = 300
/** Number of requests at the same time. */
const senders = 8
/** Maximum time in milliseconds until a server is killed. */
const lifeMsMax = 1_200

/** Returns a text with a mark that identifies a version of a file, and up to 30 paragraphs. */
function textOf(n: number, version: number): string {
  const sentence = `The wing of aircraft ${n} bends in the wind, as report ${version} explains. `
  const paragraphs = Array.from({ length: (n * 7) % 30 }, (_, at) => `${at}. ${sentence.repeat(8)}`)
  return [`mark${n}v${version} is the first word.`, ...paragraphs].join('\n\n')
}

const types: Record<string, string> = {
  md: 'text/markdown',
  txt: 'text/plain',
  html: 'text/html',
  csv: 'text/csv',
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
}
/** Extensions of ten files in a row: most files are text, because others take longer. */
const extensions = ['pdf', 'md', 'txt', 'docx', 'md', 'html', 'txt', 'csv', 'md', 'txt']

/** Creates a version of a file. */
async function fileOf(n: number, version: number): Promise<UploadedTestFile> {
  const extension = extensions[n % extensions.length]!
  const content = await contentOf(extension, textOf(n, version))
  const fields = { overwriteOnNameConflict: 'true' }
  return { name: `${n}.${extension}`, type: types[extension]!, content: content.toString('base64'), fields }
}

async function contentOf(extension: string, text: string): Promise<Buffer> {
  const paragraphs = text.split('\n\n')
  if (extension === 'pdf') return pdf(paragraphs.map(paragraph => [[11, paragraph]]))
  if (extension === 'html') return Buffer.from(`<main>${paragraphs.map(p => `<p>${p}</p>`).join('')}</main>`)
  if (extension === 'csv')
    return Buffer.from(`number,text\n${paragraphs.map((p, at) => `${at},"${p}"`).join('\n')}`)
  if (extension !== 'docx') return Buffer.from(text)
  const children = paragraphs.map(paragraph => new docx.Paragraph(paragraph))
  return docx.Packer.toBuffer(new docx.Document({ sections: [{ children }] }))
}

/** The last version of each file that was sent, and the last one that the server accepted. */
class Uploads {
  readonly sent = new Array<number>(filesMax).fill(0)
  readonly accepted = new Array<number>(filesMax).fill(0)
  readonly #busy = new Set<number>()
  #next = 0

  /** Uploads files until the server is killed or, with `isComplete`, until every file was accepted. */
  async run(server: KillableServer, path: string, isComplete = false): Promise<void> {
    const upload = async () => {
      for (;;) {
        const n = this.#take(isComplete)
        if (n === undefined) return
        const version = ++this.sent[n]!
        const answer = await server.upload(`POST ${path}/ingest/file?async=true`, await fileOf(n, version))
        this.#busy.delete(n)
        if (!answer) return
        if (answer.status === 503) continue
        expect([answer.status, answer.body.error]).toEqual([202, undefined])
        this.accepted[n] = version
      }
    }
    await Promise.all(Array.from({ length: senders }, upload))
  }

  #take(isComplete: boolean): number | undefined {
    for (let tried = 0; tried < filesMax; tried++) {
      const n = this.#next++ % filesMax
      if (this.#busy.has(n) || (isComplete && this.accepted[n] === this.sent[n] && this.sent[n]! > 0))
        continue
      this.#busy.add(n)
      return n
    }
    return undefined
  }
}

test(`${filesMax} files of several formats survive kill -9 at random moments`, {
  timeout: 120_000 + kills * 15_000,
}, async () => {
  const { wb, base, provider } = await createHostedBase({ server: false }, 8)
  const { dataDir } = wb
  const { workspaceId } = base.params
  provider.delayMs = 3
  let seed = 11
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const uploads = new Uploads()
  for (let round = 0; round < kills; round++) {
    const server = await startKillableServer(dataDir)
    const uploading = uploads.run(server, base.path)
    await new Promise(resolve => setTimeout(resolve, random() * lifeMsMax))
    await server.kill()
    await uploading
  }
  const last = await startKillableServer(dataDir)
  await uploads.run(last, base.path, true)
  await last.kill()

  const next = await open({ dataDir, server: true })
  const params = { workspaceId }
  const unfinished = async () => {
    const all = await everyPage(cursor => next.call(jobs.list, { params, query: { limit: 200, cursor } }))
    return all.filter(({ status }) => status === 'pending' || status === 'running').length
  }
  await expect.poll(unfinished, { timeout: 100_000 + kills * 5_000, interval: 500 }).toBe(0)
  await expectNothingLeft(dataDir)

  const found = baseIn(next, { ...base.params, name: base.name })
  const rows = await everyPage(cursor =>
    next.call(documents.list, { params: base.params, query: { limit: 200, cursor } }),
  )
  const failed = rows.filter(({ status }) => status === 'failed')
  for (const { errorMessage } of failed) expect(errorMessage).toMatch(/^the runtime crashed 10 times/)
  const failedNames = new Set(failed.map(({ sourceFilename }) => sourceFilename))
  const ready = rows.filter(({ status }) => status === 'ready')
  expect(new Set(ready.map(({ sourceFilename }) => sourceFilename)).size, 'no duplicates').toBe(ready.length)
  expect(ready.length + failedNames.size, 'none is lost').toBeGreaterThanOrEqual(filesMax)

  for (const { documentId, sourceFilename, chunkTotal } of ready) {
    const chunks = await next.call(documents.chunks, {
      params: { ...base.params, documentId },
      query: { limit: 1_000 },
    })
    expect([sourceFilename, chunks.length]).toEqual([sourceFilename, chunkTotal])
    const n = Number.parseInt(sourceFilename!, 10)
    const [, version] = new RegExp(`mark${n}v(\\d+)`).exec(chunks.map(({ text }) => text).join('\n')) ?? []
    if (failedNames.has(sourceFilename)) continue
    expect(Number(version), sourceFilename!).toBeGreaterThanOrEqual(uploads.accepted[n]!)
    expect(Number(version), sourceFilename!).toBeLessThanOrEqual(uploads.sent[n]!)
  }
  const chunkCount = ready.reduce((sum, { chunkTotal }) => sum + chunkTotal!, 0)
  const store = storeFile(dataDir)
  expect(store.one('SELECT count(*) AS n FROM record').n, 'no other chunk can be found').toBe(chunkCount)
  store.close()
  const claims = await everyPage(cursor =>
    next.call(audit.list, { params, query: { action: 'job.claim', limit: 200, cursor } }),
  )
  const claimed = claims.map(({ details }) => details!.jobId)
  expect(claimed.length, 'some were taken up in the middle').toBeGreaterThan(new Set(claimed).size)
  const hits = await found.search('first word', { hybrid: true, lexicalWeight: 1 })
  const readyIds = new Set(ready.map(({ documentId }) => documentId))
  expect(hits.every(({ payload }) => readyIds.has(String(payload!.documentId)))).toBe(true)
  expect(new Set(hits.map(({ payload }) => payload!.documentId)).size).toBe(ready.length)
})
