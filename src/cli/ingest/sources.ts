import { createReadStream } from 'node:fs'
import { pMapIterable } from 'p-map'
import { extensionOf } from '../../base/file-extension.ts'
import { sha256 } from '../../base/id.ts'
import { markdownProperties } from '../../base/markdown-properties.ts'
import { limits } from '../../contract/limits.ts'
import { UsageError } from '../errors.ts'
import { formatCount } from '../terminal/output.ts'
import { beirDocuments, isBeir } from './beir.ts'
import {
  type FileSource,
  type FileToRead,
  failOrSkip,
  type IngestItem,
  type Problem,
  specialFileItem,
  type TextSource,
} from './ingest-item.ts'
import {
  fileBytesMax,
  type ReadBytes,
  type ReadFailure,
  type ReadResult,
  readBytes,
  readStream,
  readStreamBytes,
  readText,
  systemFailure,
} from './read-text.ts'
import {
  isConvertible,
  isJsonLines,
  isMarkdown,
  isMaybeText,
  mediaTypeOf,
  replacementOf,
} from './text-types.ts'
import { type FetchedFolder, type WalkedItem, type WalkOptions, walk } from './walk.ts'

const readsAheadMax = 4

/** Selects the files and the standard input to ingest. */
export interface IngestSelection extends WalkOptions {
  /** Files, folders and globs; `-` means `stdin`. */
  readonly paths: readonly string[]
  /** Folders to read in addition to the paths. */
  readonly fetchedFolders?: readonly FetchedFolder[]
  readonly stdin: { readonly name: string; readonly stream: AsyncIterable<Uint8Array> } | undefined
  /** Sources that could not be fetched. */
  readonly fetchProblems?: readonly Problem[]
  /** Prefix to add to each file name. */
  readonly prefix?: string
}

/** Yields the files of a selection without reading them. */
export async function* walkSelection({
  paths,
  fetchedFolders = [],
  fetchProblems = [],
  cwd,
  all,
}: IngestSelection): AsyncGenerator<WalkedItem, void> {
  for (const problem of fetchProblems) yield { kind: 'failed', problem }
  yield* walk([...paths.filter(path => path !== '-'), ...fetchedFolders], { cwd, all })
}

/**
 * Returns a walk over which several readers can iterate. The walk advances when the first reader requests the next
 * file, and keeps all its items in memory (a few hundred bytes each).
 */
export function shareWalk(files: AsyncGenerator<WalkedItem, void>): AsyncIterable<WalkedItem> {
  const results: Promise<IteratorResult<WalkedItem, void>>[] = []
  return {
    async *[Symbol.asyncIterator]() {
      for (let index = 0; ; index++) {
        results[index] ??= files.next()
        const { done, value } = await results[index]!
        if (done) return
        yield value
      }
    },
  }
}

/** Yields all items of a selection. Reads up to {@link readsAheadMax} files before the caller requests their items. */
export async function* readSources(
  selection: IngestSelection,
  files: AsyncIterable<WalkedItem> = walkSelection(selection),
): AsyncGenerator<IngestItem> {
  const { stdin, prefix = '' } = selection
  if (stdin) yield* readStdin(stdin)
  const itemsOf = async (item: WalkedItem) =>
    'kind' in item ? [item] : readFileSources({ ...item, name: prefix + item.name })
  for await (const items of pMapIterable(files, itemsOf, { concurrency: readsAheadMax })) yield* items
}

async function* readStdin({
  name,
  stream,
}: NonNullable<IngestSelection['stdin']>): AsyncGenerator<IngestItem> {
  const file = { file: '-', path: name, name, isNamedByUser: true }
  if (isJsonLines(name)) yield* beirDocuments(file, stream)
  else if (isConvertible(name)) {
    const read = await readStreamBytes(stream)
    yield fileItem(file, read, { content: read.bytes })
  } else yield textItem(file, await readStream(stream))
}

async function readFileSources(file: FileToRead): Promise<Iterable<IngestItem> | AsyncIterable<IngestItem>> {
  const unsupported = unsupportedTypeItem(file)
  if (unsupported) return [unsupported]
  return isJsonLines(file.name) ? readJsonLinesOrText(file) : [await readDocument(file)]
}

/** Reads a file as one document. */
export function readDocument(file: FileToRead): Promise<IngestItem> {
  return isConvertible(file.name) ? readFileItem(file) : readTextItem(file)
}

async function readTextItem(file: FileToRead): Promise<IngestItem> {
  const result = await readText(file.file, { follow: file.isNamedByUser })
  const isOtherEncoding =
    'failure' in result &&
    (result.failure === 'encoding' || (result.failure === 'binary' && extensionOf(file.name) !== ''))
  // The runtime recognizes the encoding.
  return isOtherEncoding ? readFileItem(file) : textItem(file, result)
}

async function readFileItem(file: FileToRead): Promise<IngestItem> {
  const follow = file.isNamedByUser
  const result = await readBytes(file.file, { follow })
  if ('failure' in result) return unreadableItem(file, result)
  // Do not keep the bytes of all files of a batch.
  return fileItem(file, result, { content: file.file, follow })
}

function fileItem(
  file: FileToRead,
  { hash, bytes }: ReadBytes,
  content: Pick<FileSource['file'], 'content' | 'follow'>,
): IngestItem {
  if (bytes.length === 0) return emptyItem(file)
  const { name, path } = file
  return {
    kind: 'source',
    source: { path, hash, file: { ...content, name, type: mediaTypeOf(name), sizeBytes: bytes.length } },
  }
}

async function* readJsonLinesOrText(file: FileToRead): AsyncGenerator<IngestItem> {
  try {
    if (await isBeir(createReadStream(file.file))) yield* beirDocuments(file, createReadStream(file.file))
    else yield await readTextItem(file)
  } catch (error) {
    yield unreadableItem(file, systemFailure(error))
  }
}

/** Returns the item of a file that cannot be a document because of its extension; undefined for other files. */
export function unsupportedTypeItem(file: FileToRead): IngestItem | undefined {
  if (isConvertible(file.name) || isMaybeText(file.name)) return undefined
  const extension = `.${extensionOf(file.name)}`
  const replacement = replacementOf(file.name)
  const message = replacement
    ? `${extension} files are not supported; save the file as ${replacement}`
    : `${extension} files are not supported; convert the file to text, or pipe its text: wb kb ingest NAME - --name FILE`
  return failOrSkip(
    file,
    {
      category: extension,
      reason: replacement ? `not supported; save as ${replacement}` : 'not supported',
    },
    { code: 'unsupported_file_type', message },
  )
}

function textItem(file: FileToRead, result: ReadResult): IngestItem {
  if ('failure' in result) return unreadableItem(file, result)
  const { text, sizeBytes } = result
  if (text.trim() === '') return emptyItem(file)
  const body: TextSource['body'] = {
    text,
    sourceFilename: file.name,
    fileType: mediaTypeOf(file.name),
    fileSize: sizeBytes,
    metadata: isMarkdown(file.name) ? markdownProperties(text) : {},
  }
  return { kind: 'source', source: { path: file.path, body, hash: sha256(text) } }
}

function emptyItem(file: FileToRead): IngestItem {
  return failOrSkip(
    file,
    { category: 'empty files', reason: 'no text' },
    { code: 'empty_file', message: 'it contains no text' },
  )
}

function unreadableItem(
  file: FileToRead,
  result: Extract<ReadResult | ReadFailure, { failure: string }>,
): IngestItem {
  const failed = (code: string, message: string): IngestItem => ({
    kind: 'failed',
    problem: { path: file.path, code, message },
  })
  switch (result.failure) {
    case 'system':
      return failed(result.code, result.message)
    case 'not_a_file':
      return specialFileItem(file)
    case 'too_long':
      return failed(
        'payload_too_large',
        `it has more than ${formatCount(limits.ingestTextChars)} characters; split it`,
      )
    case 'too_large':
      return failed('payload_too_large', `it is larger than ${formatCount(fileBytesMax)} bytes; split it`)
    case 'encoding':
      return failed('extraction_failed', 'it is not UTF-8; convert it, for instance with iconv')
    case 'binary':
      if (extensionOf(file.name) === '')
        return failOrSkip(
          file,
          { category: 'binary files', reason: 'not text' },
          { code: 'unsupported_file_type', message: 'it is binary' },
        )
      return failed('extraction_failed', 'it contains binary data, but has the extension of a text file')
  }
}

/** Returns the `stdin` of a selection. @throws UsageError  the file name is missing */
export function selectStdin(
  name: string | undefined,
  stream: AsyncIterable<Uint8Array>,
): NonNullable<IngestSelection['stdin']> {
  if (!name)
    throw new UsageError('input from stdin needs a file name', ['add --name FILE, such as --name notes.md'])
  return { name, stream }
}
