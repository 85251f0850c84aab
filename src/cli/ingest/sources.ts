import { createReadStream } from 'node:fs'
import { limits } from '../../contract/limits.ts'
import { UsageError } from '../errors.ts'
import { count } from '../terminal/output.ts'
import { beirDocuments, isBeir } from './beir.ts'
import { type FileToRead, type IngestItem, type Source, specialFile, unsuitable } from './found.ts'
import { type Reading, readStream, readText, systemRefusal } from './read-text.ts'
import { extensionOf, holdsLines, isMarkdown, mayBeText, mediaTypeOf } from './text-types.ts'
import { markdownTitle } from './title.ts'
import { type Met, type WalkOptions, walk } from './walk.ts'

/** Input of an ingest. */
export interface Intake extends WalkOptions {
  /** Files, folders and globs; `-` means `stdin`. */
  readonly paths: readonly string[]
  readonly stdin: { readonly name: string; readonly stream: AsyncIterable<Uint8Array> } | undefined
  /** Prefix of each file name. */
  readonly prefix?: string
}

/** Finds the files of an intake, without reading them. */
export function filesOf({ paths, cwd, all }: Intake): AsyncGenerator<Met, void> {
  const onDisk = paths.filter(path => path !== '-')
  return walk(onDisk, { cwd, all })
}

/**
 * Lets several readers share one walk, which continues when the first of them asks for more. It keeps a few
 * hundred bytes for each file.
 */
export function shared(files: AsyncGenerator<Met, void>): AsyncIterable<Met> {
  const found: Promise<IteratorResult<Met, void>>[] = []
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
export async function* sources(
  intake: Intake,
  files: AsyncIterable<Met> = filesOf(intake),
): AsyncGenerator<IngestItem> {
  const { stdin, prefix = '' } = intake
  if (stdin) yield* streamed(stdin)
  for await (const met of files) {
    if ('kind' in met) yield met
    else yield* fileSources({ ...met, name: prefix + met.name })
  }
}

async function* streamed({ name, stream }: NonNullable<Intake['stdin']>): AsyncGenerator<IngestItem> {
  const file = { file: '-', path: name, name, named: true }
  if (holdsLines(name)) yield* beirDocuments(file, stream)
  else yield documentOf(file, await readStream(stream))
}

async function* fileSources(file: FileToRead): AsyncGenerator<IngestItem> {
  if (!mayBeText(file.name)) yield notText(file)
  else if (holdsLines(file.name)) yield* linesOrText(file)
  else yield documentOf(file, await readText(file.file, { follow: file.named }))
}

async function* linesOrText(file: FileToRead): AsyncGenerator<IngestItem> {
  try {
    if (await isBeir(createReadStream(file.file))) yield* beirDocuments(file, createReadStream(file.file))
    else yield documentOf(file, await readText(file.file, { follow: file.named }))
  } catch (error) {
    yield refused(file, systemRefusal(error))
  }
}

function notText(file: FileToRead): IngestItem {
  const extension = `.${extensionOf(file.name)}`
  const message = `${extension} files are not supported; convert it to text, or pipe it in: wb kb ingest NAME - --name FILE`
  return unsuitable(
    file,
    { as: extension, reason: 'not supported' },
    { code: 'unsupported_file_type', message },
  )
}

function documentOf(file: FileToRead, reading: Reading): IngestItem {
  if ('refused' in reading) return refused(file, reading)
  const { text, sizeBytes } = reading
  if (text.trim() === '')
    return unsuitable(
      file,
      { as: 'empty files', reason: 'no text' },
      { code: 'empty_file', message: 'it contains no text' },
    )
  const title = isMarkdown(file.name) ? markdownTitle(text) : undefined
  const about = { sourceFilename: file.name, fileType: mediaTypeOf(file.name), fileSize: sizeBytes }
  const body: Source['body'] = { text, ...about, metadata: title ? { title } : {} }
  return { kind: 'source', source: { path: file.path, body } }
}

function refused(file: FileToRead, reading: Extract<Reading, { refused: string }>): IngestItem {
  const failed = (code: string, message: string): IngestItem => ({
    kind: 'failed',
    problem: { path: file.path, code, message },
  })
  switch (reading.refused) {
    case 'system':
      return failed(reading.code, reading.message)
    case 'not_a_file':
      return specialFile(file)
    case 'too_long':
      return failed(
        'payload_too_large',
        `it has more than ${count(limits.ingestTextChars)} characters; split it`,
      )
    case 'encoding':
      return failed('extraction_failed', 'it is not UTF-8; convert it, for instance with iconv')
    case 'binary':
      if (extensionOf(file.name) === '')
        return unsuitable(
          file,
          { as: 'binary files', reason: 'not text' },
          { code: 'unsupported_file_type', message: 'it is binary' },
        )
      return failed('extraction_failed', 'it contains binary data, but has the extension of a text file')
  }
}

/** @throws UsageError  when the name is missing */
export function stdinNamed(
  name: string | undefined,
  stream: AsyncIterable<Uint8Array>,
): NonNullable<Intake['stdin']> {
  if (!name)
    throw new UsageError('input from stdin needs a file name', ['add --name FILE, such as --name notes.md'])
  return { name, stream }
}
