import { join } from 'node:path'
import { shellWord } from '../../base/shell-word.ts'
import { type Client, collect } from '../../client/client.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { type KnowledgeBase, kb } from '../../contract/knowledge.ts'
import { type Workspace, workspaces } from '../../contract/workspaces.ts'
import type { ResolvedRuntime } from '../connection/resolve-runtime.ts'
import { documentName } from '../fields/resources.ts'
import { listKnowledgeBases } from '../find/resolve.ts'
import { ingest } from '../ingest/ingest.ts'
import { detailLines, formatElapsed, type IngestSummary } from '../ingest/summary.ts'
import { findPassages, type Passage } from '../passages/find-passages.ts'
import { storeSearch, toCitedHits } from '../passages/last-search.ts'
import type { Profile } from '../settings/profile.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'
import { countItems } from '../terminal/take-first.ts'
import { pad, plainLine } from '../terminal/terminal-text.ts'
import { nextShippedQuestion, type QuickstartPlan, shippedQuestion } from './plan.ts'

/** Number of passages in the first answer. */
const passagesShown = 3

/** Dependencies of a quickstart. */
export interface QuickstartOptions {
  readonly client: Client
  readonly signal: AbortSignal
  readonly progress: Progress
  readonly output: Output
  readonly profile: Profile
  readonly runtime: ResolvedRuntime
  /** True to train the embedder before the search. */
  readonly wait: boolean
}

/** Result of a quickstart. */
export interface QuickstartResult {
  readonly workspace: Workspace
  readonly base: KnowledgeBase
  /** True if commands use this workspace by default, so that suggestions need not name it. */
  readonly isDefaultWorkspace: boolean
  readonly contents: { readonly documents: number; readonly chunks: number | undefined }
  readonly summary: IngestSummary
  readonly question: string
  /** Suggested next question. */
  readonly nextQuestion: string
  readonly passages: readonly Passage[]
}

/**
 * Creates what is missing, ingests, and searches. Reports each completed step.
 *
 * @throws the error that interrupted the ingest, after its completed work is reported
 */
export async function quickstart(parts: QuickstartOptions, plan: QuickstartPlan): Promise<QuickstartResult> {
  const { client, signal, progress, output, profile, runtime } = parts
  const style = output.errorStyle
  if (plan.emptyFolder)
    output.note(
      `  – ${folderName(plan.emptyFolder)} contains no text, so the documents of Workbase are used instead\n`,
    )
  const { workspace, base, isDefaultWorkspace } = await findOrCreateTarget(
    client,
    profile.workspace,
    plan.name,
  )
  output.note(`  ${style.good('✓')} workspace   ${plainLine(workspace.name)}`)
  const { summary, interruption } = await ingest({ client, signal, progress, base }, plan.intake)
  for (const line of detailLines(output, summary.tally)) output.warn(line)
  if (interruption) throw interruption.error
  if (parts.wait) await runtime.settle({ signal, progress })
  progress.end()
  const contents = await countContents(client, base)
  output.note(
    `  ${style.good('✓')} knowledge   ${pad(base.name, nameWidth)}  ${formatContents(contents, summary)}\n`,
  )
  const [question, nextQuestion] = await chooseQuestions(client, base, plan)
  const passages = await findPassages({ client, base, signal, body: { text: question } }, passagesShown)
  storeSearch(profile, toCitedHits(base, passages))
  return { workspace, base, isDefaultWorkspace, contents, summary, question, nextQuestion, passages }
}

const nameWidth = 14

function folderName(folder: string): string {
  return folder === '.' ? 'this folder' : plainLine(folder)
}

function formatContents(
  { documents, chunks }: QuickstartResult['contents'],
  { tally, elapsedMs }: IngestSummary,
): string {
  const changed = tally.added + tally.replaced > 0
  const parts = [
    formatCounted(documents, 'document'),
    ...(chunks === undefined ? [] : [formatCounted(chunks, 'chunk')]),
  ]
  return `${parts.join(', ')}   ${changed ? formatElapsed(elapsedMs) : 'unchanged'}`
}

/**
 * Returns commands to try next.
 *
 * @param program  words that start this program
 * @param kind     kind of the runtime; one inside a command has no pages to open
 */
export function nextStepLines(
  { base, workspace, isDefaultWorkspace, nextQuestion, passages }: QuickstartResult,
  { width, contextFlags }: Pick<Output, 'width' | 'contextFlags'>,
  { program, kind }: { program: string; kind: ResolvedRuntime['kind'] },
): string[] {
  const where = `${isDefaultWorkspace ? '' : ` -w ${shellWord(workspace.name)}`}${contextFlags}`
  const name = shellWord(base.name)
  const question = /^[\w ]+$/.test(nextQuestion) ? `"${nextQuestion}"` : shellWord(nextQuestion)
  const serving =
    kind === 'process' ? `serve --open${contextFlags.replace(' --as-operator', '')}` : `open${contextFlags}`
  const lines: [string, string][] = [
    [`${program} kb ingest ${name} ./my-folder${where}`, 'add your own files'],
    [`${program} kb search ${name} ${question}${where}`, 'ask something else'],
    ...(passages[0]?.documentId
      ? [
          [`${program} documents show 1${contextFlags}`, 'show passage [1] in its context'] satisfies [
            string,
            string,
          ],
        ]
      : []),
    [`${program} ${serving}`, 'start or open the HTTP API'],
  ]
  const column = Math.max(...lines.map(([line]) => line.length)) + 4
  const fits = lines.every(([, about]) => column + about.length + 4 <= width)
  return lines.map(([line, about]) => (fits ? `    ${pad(line, column)}${about}` : `    ${line}`))
}

/** Returns the workspace and knowledge base, and creates missing ones. */
async function findOrCreateTarget(
  client: Client,
  named: string | undefined,
  name: string,
): Promise<Pick<QuickstartResult, 'workspace' | 'base' | 'isDefaultWorkspace'>> {
  const workspaceName = named ?? 'demo'
  const all = await collect(client.items(workspaces.list, {}))
  const known = all.find(row => row.name === workspaceName || row.workspaceId === workspaceName)
  const workspace = known ?? (await client.call(workspaces.create, { body: { name: workspaceName } }))
  const params = { workspaceId: workspace.workspaceId }
  const bases = await listKnowledgeBases(client, workspace.workspaceId)
  const base =
    bases.find(row => row.name === name) ?? (await client.call(kb.create, { params, body: { name } }))
  return { workspace, base, isDefaultWorkspace: named !== undefined || all.length === (known ? 1 : 0) }
}

/** Counts the contents of a knowledge base. */
async function countContents(client: Client, { workspaceId, knowledgeBaseId }: KnowledgeBase) {
  const params = { workspaceId, knowledgeBaseId }
  const { embedder } = await client.call(kb.show, { params })
  const held = await countItems(client.items(documents.list, { params }))
  return { documents: held, chunks: embedder?.chunks }
}

/**
 * Returns the question to ask now, and another. For a knowledge base with unknown contents, they come from
 * the names of the first documents.
 */
async function chooseQuestions(
  client: Client,
  { workspaceId, knowledgeBaseId }: KnowledgeBase,
  { question, isShipped }: QuickstartPlan,
): Promise<[string, string]> {
  if (isShipped) return [question ?? shippedQuestion, nextShippedQuestion]
  const params = { workspaceId, knowledgeBaseId }
  const { items } = await client.call(documents.list, { params, query: { limit: 2 } })
  const [first = shippedQuestion, second = first] = items.map(questionFromName)
  return question === undefined ? [first, second] : [question, first]
}

function questionFromName(document: Document): string {
  return plainLine(documentName(document))
    .replace(/\.\w+$/, '')
    .replace(/[-_/]+/g, ' ')
}

/** Describes the address of the runtime and where it stores data. */
export function runtimeLocation(
  { kind, baseUrl }: Pick<ResolvedRuntime, 'kind' | 'baseUrl'>,
  dataDir: string,
  home: string,
): string[] {
  const data = `data in ${dataDir.startsWith(join(home, '/')) ? `~${dataDir.slice(home.length)}` : dataDir}`
  if (kind === 'process') return ['embedded runtime', data]
  return kind === 'server' ? [`wb serve at ${baseUrl}`, data] : [baseUrl]
}
