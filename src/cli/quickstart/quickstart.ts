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
import { storeIngestedFolders } from '../ingest/ingested-folders.ts'
import { detailLines, formatElapsed, type IngestSummary } from '../ingest/summary.ts'
import { findPassages, type Passage } from '../passages/find-passages.ts'
import { storeSearch, toCitedHits } from '../passages/last-search.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import type { Profile } from '../settings/profile.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'
import { countItems } from '../terminal/take-first.ts'
import { pad, plainLine } from '../terminal/terminal-text.ts'
import { nextShippedQuestion, type QuickstartPlan, shippedQuestion } from './plan.ts'

/** Maximum number of passages in the result. */
const passagesMax = 3

/** Dependencies of a quickstart. */
export interface QuickstartOptions {
  readonly client: Client
  readonly signal: AbortSignal
  readonly progress: Progress
  readonly output: Output
  readonly profile: Profile
  readonly runtime: ResolvedRuntime
  /** True to wait until the embedder is fitted before the search. */
  readonly wait: boolean
}

/** Result of a quickstart. */
export interface QuickstartResult {
  readonly workspace: Workspace
  readonly base: KnowledgeBase
  /** True if commands use this workspace by default. If so, suggested commands do not contain its name. */
  readonly isDefaultWorkspace: boolean
  readonly contents: { readonly documents: number; readonly chunks: number | undefined }
  readonly summary: IngestSummary
  readonly question: string
  /** Suggested next question. */
  readonly nextQuestion: string
  readonly passages: readonly Passage[]
}

/**
 * Creates the workspace and knowledge base if they are missing, ingests the documents, and searches them. Reports
 * each completed step.
 *
 * @throws the error that interrupted the ingest, after its completed work is reported
 */
export async function quickstart(
  options: QuickstartOptions,
  plan: QuickstartPlan,
): Promise<QuickstartResult> {
  const { client, signal, progress, output, profile, runtime } = options
  const style = output.errorStyle
  if (plan.emptyFolder)
    output.note(
      `  – ${folderName(plan.emptyFolder)} contains no text, so the Workbase documentation is used instead\n`,
    )
  const { workspace, base, isDefaultWorkspace } = await findOrCreateTarget(
    client,
    profile.workspace,
    plan.name,
  )
  output.note(`  ${style.good('✓')} workspace   ${plainLine(workspace.name)}`)
  const { paths, cwd } = plan.selection
  storeIngestedFolders(
    profile,
    base,
    paths.map(path => resolveTypedPath(cwd, path)),
  )
  const { summary, interruption } = await ingest({ client, signal, progress, base }, plan.selection)
  for (const line of detailLines(output, summary.tally, false)) output.warn(line)
  if (interruption) throw interruption.error
  if (options.wait) await runtime.settle({ signal, progress })
  progress.end()
  const contents = await countContents(client, base)
  output.note(
    `  ${style.good('✓')} knowledge   ${pad(base.name, nameWidth)}  ${formatContents(contents, summary)}\n`,
  )
  const [question, nextQuestion] = await chooseQuestions(client, base, plan)
  const passages = await findPassages(
    { client, base, signal, body: { text: question } },
    { limit: passagesMax },
  )
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
  const hasChanges = tally.added + tally.replaced > 0
  const parts = [
    formatCounted(documents, 'document'),
    ...(chunks === undefined ? [] : [formatCounted(chunks, 'chunk')]),
  ]
  return `${parts.join(', ')}   ${hasChanges ? formatElapsed(elapsedMs) : 'unchanged'}`
}

/**
 * Returns commands to try next, with descriptions if the terminal is wide enough.
 *
 * @param program  words that start this program, such as `wb` or `npx workbase`
 * @param kind     kind of the runtime; for an embedded runtime (`process`), the suggested command starts a server
 */
export function nextStepLines(
  { base, workspace, isDefaultWorkspace, nextQuestion, passages }: QuickstartResult,
  { width, contextFlags }: Pick<Output, 'width' | 'contextFlags'>,
  { program, kind }: { program: string; kind: ResolvedRuntime['kind'] },
): string[] {
  const scopeFlags = `${isDefaultWorkspace ? '' : ` -w ${shellWord(workspace.name)}`}${contextFlags}`
  const name = shellWord(base.name)
  const question = /^[\w ]+$/.test(nextQuestion) ? `"${nextQuestion}"` : shellWord(nextQuestion)
  const openApi =
    kind === 'process' ? `serve --open${contextFlags.replace(' --as-operator', '')}` : `open${contextFlags}`
  const lines: [string, string][] = [
    [`${program} kb ingest ${name} ./my-folder${scopeFlags}`, 'add your own files'],
    [`${program} kb search ${name} ${question}${scopeFlags}`, 'ask something else'],
    ...(passages[0]?.documentId
      ? [
          [`${program} documents show 1${contextFlags}`, 'show passage [1] in its context'] satisfies [
            string,
            string,
          ],
        ]
      : []),
    [`${program} ${openApi}`, 'start or open the HTTP API'],
  ]
  const commandWidth = Math.max(...lines.map(([command]) => command.length)) + 4
  const showsDescriptions = lines.every(([, description]) => commandWidth + description.length + 4 <= width)
  return lines.map(([command, description]) =>
    showsDescriptions ? `    ${pad(command, commandWidth)}${description}` : `    ${command}`,
  )
}

/** Finds the workspace and knowledge base, or creates missing ones. */
async function findOrCreateTarget(
  client: Client,
  namedWorkspace: string | undefined,
  baseName: string,
): Promise<Pick<QuickstartResult, 'workspace' | 'base' | 'isDefaultWorkspace'>> {
  const workspaceName = namedWorkspace ?? 'demo'
  const all = await collect(client.items(workspaces.list, {}))
  const existingWorkspace = all.find(row => row.name === workspaceName || row.workspaceId === workspaceName)
  const workspace =
    existingWorkspace ?? (await client.call(workspaces.create, { body: { name: workspaceName } }))
  const params = { workspaceId: workspace.workspaceId }
  const bases = await listKnowledgeBases(client, workspace.workspaceId)
  const base =
    bases.find(row => row.name === baseName) ??
    (await client.call(kb.create, { params, body: { name: baseName } }))
  const isDefaultWorkspace = namedWorkspace !== undefined || all.length === (existingWorkspace ? 1 : 0)
  return { workspace, base, isDefaultWorkspace }
}

async function countContents(client: Client, { workspaceId, knowledgeBaseId }: KnowledgeBase) {
  const params = { workspaceId, knowledgeBaseId }
  const { embedder } = await client.call(kb.show, { params })
  const documentCount = await countItems(client.items(documents.list, { params }))
  return { documents: documentCount, chunks: embedder?.chunks }
}

/**
 * Returns the question to search for now, and the one to suggest next. For the user's documents, questions are derived
 * from the names of the first documents.
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

/** Describes the runtime: its address, and for a runtime on this machine, its data directory. */
export function runtimeLocation(
  { kind, baseUrl }: Pick<ResolvedRuntime, 'kind' | 'baseUrl'>,
  dataDir: string,
  home: string,
): string[] {
  const data = `data in ${dataDir.startsWith(join(home, '/')) ? `~${dataDir.slice(home.length)}` : dataDir}`
  if (kind === 'process') return ['embedded runtime', data]
  return kind === 'server' ? [`wb serve at ${baseUrl}`, data] : [baseUrl]
}
