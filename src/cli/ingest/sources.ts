import { createReadStream } from 'node:fs'
import { limits } from '../../contract/limits.ts'
import { UsageError } from '../errors.ts'
import { formatCount } from '../terminal/output.ts'
import { beirDocuments, isBeir } from './beir.ts'
import { type FileToRead, failOrSkip, type IngestItem, type Source, specialFileItem } from './ingest-item.ts'
import { markdownTitle } from './markdown-title.ts'
import { type ReadResult, readStream, readText, systemRefusal } from './read-text.ts'
import { extensionOf, isJsonLines, isMarkdown, isMaybeText, mediaTypeOf } from './text-types.ts'
import { type WalkedItem, type WalkOptions, walk } from './walk.ts'

/** Input of an ingest. */
export interface Intake extends WalkOptions {
  /** Files, folders and globs; `-` means `stdin`. */
  readonly paths: readonly string[]
  readonly stdin: { readonly name: string; readonly stream: AsyncIterable<Uint8Array> } | undefined
  /** Prefix of each file name. */
  readonly prefix?: string
}

/** Finds the files of an intake, without reading them. */
export function walkIntake({ paths, cwd, all }: Intake): AsyncGenerator<WalkedItem, void> {
  const onDisk = paths.filter(path => path !== '-')
  return walk(onDisk, { cwd, all })
}

/**
 * Lets several readers share one walk, which continues when the first of them asks for more. It keeps a few
 * hundred bytes for each file.
 */
export function shareWalk(files: AsyncGenerator<WalkedItem, void>): AsyncIterable<WalkedItem> {
  const found: Promise<IteratorResult<WalkedItem, void>>[] = []
  return {
    async *[Symbol.asyncIterator]() {
      for (let at = 0; ; at++) {
        found[at] ??= files.next()
        const { done, value } = await found[at]!
        if (done) return
        yield value
      }
    },
  }
}

/** Yields all sources of an intake, and reads each when it is requested. */
export async function* readSources(
  intake: Intake,
  files: AsyncIterable<WalkedItem> = walkIntake(intake),
): AsyncGenerator<IngestItem> {
  const { stdin, prefix = '' } = intake
  if (stdin) yield* readStdin(stdin)
  for await (const met of files) {
    if ('kind' in met) yield met
    else yield* readFileSources({ ...met, name: prefix + met.name })
  }
}

async function* readStdin({ name, stream }: NonNullable<Intake['stdin']>): AsyncGenerator<IngestItem> {
  const file = { file: '-', path: name, name, isNamedByUser: true }
  if (isJsonLines(name)) yield* beirDocuments(file, stream)
  else yield toIngestItem(file, await readStream(stream))
}

async function* readFileSources(file: FileToRead): AsyncGenerator<IngestItem> {
  if (!isMaybeText(file.name)) yield unsupportedTypeItem(file)
  else if (isJsonLines(file.name)) yield* readJsonLinesOrText(file)
  else yield toIngestItem(file, await readText(file.file, { follow: file.isNamedByUser }))
}

async function* readJsonLinesOrText(file: FileToRead): AsyncGenerator<IngestItem> {
  try {
    if (await isBeir(createReadStream(file.file))) yield* beirDocuments(file, createReadStream(file.file))
    else yield toIngestItem(file, await readText(file.file, { follow: file.isNamedByUser }))
  } catch (error) {
    yield unreadableItem(file, systemRefusal(error))
  }
}

function unsupportedTypeItem(file: FileToRead): IngestItem {
  const extension = `.${extensionOf(file.name)}`
  const message = `${extension} files are not supported; convert it to text, or pipe it in: wb kb ingest NAME - --name FILE`
  return failOrSkip(
    file,
    { as: extension, reason: 'not supported' },
    { code: 'unsupported_file_type', message },
  )
}

function toIngestItem(file: FileToRead, reading: ReadResult): IngestItem {
  if ('refused' in reading) return unreadableItem(file, reading)
  const { text, sizeBytes } = reading
  if (text.trim() === '')
    return failOrSkip(
      file,
      { as: 'empty files', reason: 'no text' },
      { code: 'empty_file', message: 'it contains no text' },
    )
  const title = isMarkdown(file.name) ? markdownTitle(text) : undefined
  const about = { sourceFilename: file.name, fileType: mediaTypeOf(file.name), fileSize: sizeBytes }
  const body: Source['body'] = { text, ...about, metadata: title ? { title } : {} }
  return { kind: 'source', source: { path: file.path, body } }
}

function unreadableItem(file: FileToRead, reading: Extract<ReadResult, { refused: string }>): IngestItem {
  const failed = (code: string, message: string): IngestItem => ({
    kind: 'failed',
    problem: { path: file.path, code, message },
  })
  switch (reading.refused) {
    case 'system':
      return failed(reading.code, reading.message)
    case 'not_a_file':
      return specialFileItem(file)
    case 'too_long':
      return failed(
        'payload_too_large',
        `it has more than ${formatCount(limits.ingestTextChars)} characters; split it`,
      )
    case 'encoding':
      return failed('extraction_failed', 'it is not UTF-8; convert it, for instance with iconv')
    case 'binary':
      if (extensionOf(file.name) === '')
        return failOrSkip(
          file,
          { as: 'binary files', reason: 'not text' },
          { code: 'unsupported_file_type', message: 'it is binary' },
        )
      return failed('extraction_failed', 'it contains binary data, but has the extension of a text file')
  }
}

/** @throws UsageError  when the name is missing */
export function stdinIntake(
  name: string | undefined,
  stream: AsyncIterable<Uint8Array>,
): NonNullable<Intake['stdin']> {
  if (!name)
    throw new UsageError('input from stdin needs a file name', ['add --name FILE, such as --name notes.md'])
  return { name, stream }
}
