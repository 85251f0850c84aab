import { readdir, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { packageRoot } from '../../base/package.ts'
import { UsageError } from '../errors.ts'
import { countDocuments } from '../ingest/count-documents.ts'
import { type IngestSelection, walkSelection } from '../ingest/sources.ts'
import { isMarkdown } from '../ingest/text-types.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'

const shippedBaseName = 'handbook'
/** A question that the documents in the package answer. */
export const shippedQuestion = 'is my data encrypted'
/** Another question that the documents in the package answer. */
export const nextShippedQuestion = 'how do I back up'
const nameCharsMax = 48

/** The documents, knowledge base and question of a quickstart. */
export interface QuickstartPlan {
  readonly selection: IngestSelection
  /** Name of the knowledge base. */
  readonly name: string
  /** Undefined to derive the question from the first documents. */
  readonly question: string | undefined
  /** True if the documents in the package are used. */
  readonly isShipped: boolean
  /** Folder from the command line, if it contains no text. If so, the documents in the package are used instead. */
  readonly emptyFolder?: string
}

/**
 * Interprets the arguments of `quickstart`: a folder, a question, both, or neither.
 *
 * @throws UsageError  when the folder does not exist or is not a folder
 */
export async function planQuickstart(
  firstArgument: string | undefined,
  secondArgument: string | undefined,
  { cwd, signal }: { cwd: string; signal: AbortSignal },
): Promise<QuickstartPlan> {
  const isQuestionOnly =
    secondArgument === undefined &&
    firstArgument !== undefined &&
    /\s/.test(firstArgument) &&
    !(await isFolder(resolveTypedPath(cwd, firstArgument)))
  const folder = isQuestionOnly ? undefined : firstArgument
  const question = isQuestionOnly ? firstArgument : secondArgument
  if (folder === undefined) return planShipped(question, cwd)
  if (!(await isFolder(resolveTypedPath(cwd, folder))))
    throw new UsageError(`there is no folder "${folder}"`, [
      'wb quickstart ./my-folder "a question"',
      'wb quickstart',
    ])
  const selection = { paths: [folder], cwd, all: false, stdin: undefined }
  if ((await countDocuments(selection, walkSelection(selection), signal)) === 0)
    return { ...(await planShipped(question, cwd)), emptyFolder: folder }
  return { selection, name: baseNameFromPath(resolve(cwd, folder)), question, isShipped: false }
}

/** Reference pages. They are not ingested, because they contain the words of most questions, but no answers. */
const referencePages = [
  'architecture.md',
  'benchmarks.md',
  'api.md',
  'errors.md',
  'glossary.md',
  'http.md',
  'requirements.md',
]

/**
 * Returns a plan for the user documentation in the package. Its subfolders, which are for contributors, are
 * omitted.
 */
async function planShipped(question: string | undefined, cwd: string): Promise<QuickstartPlan> {
  const folder = join(packageRoot(), 'docs')
  const pages = (await readdir(folder)).filter(name => isMarkdown(name) && !referencePages.includes(name))
  const paths = pages.map(name => join(folder, name))
  const selection = { paths, cwd, all: true, stdin: undefined, prefix: 'docs/' }
  return { selection, name: shippedBaseName, question, isShipped: true }
}

async function isFolder(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  return stats?.isDirectory() ?? false
}

/** Derives the name of a knowledge base from a folder: a letter, followed by letters, digits and underscores. */
export function baseNameFromPath(folder: string): string {
  const name = basename(folder)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^[^A-Za-z]+|_+$/g, '')
  return name.slice(0, nameCharsMax) || shippedBaseName
}
