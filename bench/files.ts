/**
 * Measures the ingest of files:
 *
 * - PDF pages per second on a reading thread, compared with the parser library alone,
 * - a folder of 1,000 files in several formats that is ingested again, unchanged,
 * - memory of the server, and search times, while text and 2,000 PDF pages are ingested.
 *
 * npm run bench:files -- [MEGABYTES]     default: 1,000 MB of text
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getDocumentProxy } from 'unpdf'
import { FileReader } from '../src/formats/file-reader.ts'
import { pdf } from '../test/formats/files.ts'
import { memoryOf } from '../test/harness/process-usage.ts'
import { drawDocument } from './random-documents.ts'
import {
  call,
  createBase,
  remove,
  startServer,
  temporaryFolder,
  unlimited,
  untilFitted,
  wb,
} from './server.ts'
import { median, quantile, table } from './statistics.ts'

const textMegabytes = Number(process.argv[2] ?? 1_000)
const wordsPerPage = 400
const pagesPerFile = 100
const pdfFiles = 20
const rounds = 5
const warmUps = 4
const searchPauseMs = 50
const quietSearches = 200

const caller = { workspaceId: 'bench', member: 'bench', signal: new AbortController().signal }

function drawPdf(pages: number): Promise<Buffer> {
  return pdf(
    Array.from({ length: pages }, (_, page) => [
      [18, `Section ${page + 1}`],
      [11, drawDocument(wordsPerPage).text],
    ]),
  )
}

/** Reads the text of all pages with the parser library alone. */
async function readWithLibrary(path: string): Promise<number> {
  const document = await getDocumentProxy(new Uint8Array(readFileSync(path)), { verbosity: 0 })
  let chars = 0
  for (let number = 1; number <= document.numPages; number++) {
    const page = await document.getPage(number)
    for (const item of (await page.getTextContent()).items) chars += 'str' in item ? item.str.length : 0
    page.cleanup()
  }
  const { numPages } = document
  await document.destroy()
  if (chars === 0) throw new Error(`${path} has no text`)
  return numPages
}

async function measurePdf(folder: string): Promise<void> {
  const path = join(folder, 'file-0.pdf')
  const reader = new FileReader()
  const readOnThread = async () => {
    await reader.read(
      { path, name: 'file.pdf', type: 'application/pdf' },
      { canBeText: false, withProperties: false },
      caller,
    )
    return pagesPerFile
  }
  const ways = { 'library alone': () => readWithLibrary(path), 'reading thread': readOnThread }
  const rates = Object.fromEntries(Object.keys(ways).map((name): [string, number[]] => [name, []]))
  for (let round = -warmUps; round < rounds; round++)
    for (const [name, read] of Object.entries(ways)) {
      const started = performance.now()
      const pages = await read()
      // The first rounds start the thread and compile the code.
      if (round >= 0) rates[name]!.push((1_000 * pages) / (performance.now() - started))
    }
  await reader.close()
  const alone = median(rates['library alone']!)
  const rows = Object.entries(rates).map(([name, sample]) => {
    const rate = median(sample)
    return [name, rate.toFixed(0), (rate / alone).toFixed(2)]
  })
  console.log(table(['PDF', 'pages/s', 'ratio'], rows))
}

/** Writes 1,000 files with different texts. */
async function writeMixedFolder(folder: string): Promise<void> {
  mkdirSync(folder)
  for (let at = 0; at < 1_000; at++) {
    const { title, text } = drawDocument(200)
    const [extension, content] = [
      ['md', `# ${title}\n\n${text}\n`],
      ['html', `<!doctype html><title>${title}</title><main><h1>${title}</h1><p>${text}</p></main>`],
      ['txt', text],
      ['rtf', `{\\rtf1\\ansi ${text}\\par}`],
      ['csv', `name,text\n${title},"${text}"\n`],
      ['eml', `Subject: ${title}\nFrom: a@example.com\nContent-Type: text/plain\n\n${text}\n`],
      ['srt', `1\n00:00:01,000 --> 00:00:02,000\n${text}\n`],
      ['json', JSON.stringify({ title, text })],
      ['xml', `<note><title>${title}</title><text>${text}</text></note>`],
      ['pdf', at % 10 === 9 ? await pdf([[[11, text]]]) : ''],
    ][at % 10]! as [string, string | Buffer]
    writeFileSync(join(folder, `file-${at}.${extension}`), content)
  }
}

async function measureUnchanged(folder: string): Promise<void> {
  await writeMixedFolder(folder)
  const dataDir = temporaryFolder()
  const ingest = () => {
    const { command, args, env } = wb(dataDir, 'kb', 'ingest', 'mixed', folder, '--create', '--json')
    const started = performance.now()
    const { stdout, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
    const { added, unchanged, failed } = JSON.parse(stdout) as Record<'added' | 'unchanged', number> & {
      failed: unknown[]
    }
    if (failed.length > 0) throw new Error(stderr)
    return { seconds: (performance.now() - started) / 1_000, added, unchanged }
  }
  const first = ingest()
  const again = Array.from({ length: rounds }, ingest)
  remove(dataDir)
  const rows = [
    ['first', first.added, first.unchanged, first.seconds.toFixed(2)],
    ['again', again[0]!.added, again[0]!.unchanged, median(again.map(({ seconds }) => seconds)).toFixed(2)],
  ]
  console.log(table(['1,000 files', 'added', 'unchanged', 'median s'], rows))
}

/** Writes text files of 1 MB. */
function writeTexts(folder: string): void {
  mkdirSync(folder)
  for (let at = 0; at < textMegabytes; at++) {
    let text = ''
    while (text.length < 1_000_000) text += `${drawDocument(1_000).text}\n\n`
    writeFileSync(join(folder, `text-${at}.txt`), text.slice(0, 1_000_000))
  }
}

async function measureWhileIngesting(folders: readonly string[]): Promise<void> {
  const server = await startServer(undefined, { config: unlimited })
  try {
    const base = await createBase(server)
    const lines = Array.from({ length: 2_000 }, (_, at) => {
      const { text } = drawDocument(1_000)
      return `${JSON.stringify({ text, sourceFilename: `quiet-${at}.txt` })}\n`
    })
    for (let at = 0; at < lines.length; at += 250) {
      const body = lines.slice(at, at + 250).join('')
      const headers = { 'content-type': 'application/x-ndjson' }
      const response = await fetch(new URL(`${base}/ingest/batch`, server.url), {
        method: 'POST',
        headers,
        body,
      })
      await response.text()
    }
    await untilFitted(server, base, 120)
    const search = async () => {
      const { text } = drawDocument(6)
      const started = performance.now()
      await call(server, 'POST', `${base}/search`, { text, topK: 10 })
      return performance.now() - started
    }
    for (let at = 0; at < 20; at++) await search()
    const quiet: number[] = []
    for (let at = 0; at < quietSearches; at++) quiet.push(await search())
    const before = memoryOf(server.pid).now
    const { command, args, env } = wb(
      server.dataDir,
      'kb',
      'ingest',
      'large',
      ...folders,
      '--create',
      '--json',
    )
    const started = performance.now()
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
    let summary = ''
    child.stdout.setEncoding('utf8').on('data', part => (summary += part))
    const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
    let isRunning = true
    void ended.then(() => (isRunning = false))
    const busy: number[] = []
    let peak = before
    while (isRunning) {
      busy.push(await search())
      peak = Math.max(peak, memoryOf(server.pid).now)
      await new Promise(resolve => setTimeout(resolve, searchPauseMs))
    }
    const seconds = (performance.now() - started) / 1_000
    const { added, failed } = JSON.parse(summary) as { added: number; failed: unknown[] }
    const ratio = quantile(busy, 0.95) / quantile(quiet, 0.95)
    console.log(
      table(
        ['while ingesting', 'value'],
        [
          ['files added', added],
          ['files failed', failed.length],
          ['seconds', seconds.toFixed(0)],
          ['resident set before, MB', (before / 1e6).toFixed(0)],
          ['largest growth of it, MB', ((peak - before) / 1e6).toFixed(0)],
          ['searches', busy.length],
          ['search p95 before, ms', quantile(quiet, 0.95).toFixed(1)],
          ['search p95 meanwhile, ms', quantile(busy, 0.95).toFixed(1)],
          ['ratio', ratio.toFixed(1)],
        ],
      ),
    )
  } finally {
    await server.stop()
    remove(server.dataDir)
  }
}

const folder = temporaryFolder()
const pdfFolder = join(folder, 'pdf')
mkdirSync(pdfFolder)
for (let at = 0; at < pdfFiles; at++)
  writeFileSync(join(pdfFolder, `file-${at}.pdf`), await drawPdf(pagesPerFile))
await measurePdf(pdfFolder)
await measureUnchanged(join(folder, 'mixed'))
writeTexts(join(folder, 'text'))
await measureWhileIngesting([join(folder, 'text'), pdfFolder])
remove(folder)
