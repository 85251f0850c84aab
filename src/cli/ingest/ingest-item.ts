import type { IngestInput } from '../../contract/documents.ts'

/** A document to ingest: a text, or a file that the runtime converts to text. */
export type IngestSource = TextSource | FileSource

export interface TextSource {
  /** Path as the user would type it, for error messages. */
  readonly path: string
  readonly body: IngestInput & { readonly sourceFilename: string }
  /** SHA-256 of the file; undefined if the text has metadata that is not part of it. */
  readonly hash?: string
}

export interface FileSource {
  /** Path as the user would type it, for error messages. */
  readonly path: string
  readonly file: {
    /** Path of the file, or its bytes. */
    readonly content: string | Uint8Array<ArrayBuffer>
    /** True if the path may be a symbolic link, because the user named it. */
    readonly follow?: boolean
    /** Value for `sourceFilename`. */
    readonly name: string
    readonly type: string
    readonly sizeBytes: number
    /** Fields of the request. Their metadata takes precedence over that of the file. */
    readonly fields?: Pick<IngestInput, 'metadata' | 'visibleTo' | 'ownerPrincipalId'>
  }
  /** SHA-256 of the file; undefined to send it even if it is stored. */
  readonly hash?: string
}

/** Returns the file name under which a source is stored. */
export function nameOf(source: IngestSource): string {
  return 'file' in source ? source.file.name : source.body.sourceFilename
}

/** Reason why a file was not ingested. The code is an error code of the API or of the operating system (`EACCES`). */
export interface Problem {
  readonly path: string
  readonly code: string
  readonly message: string
}

/** Result of reading a path: a text, a problem, or a file that is skipped because it is not a document. */
export type IngestItem =
  | { readonly kind: 'source'; readonly source: IngestSource }
  | { readonly kind: 'failed'; readonly problem: Problem }
  | ({ readonly kind: 'skipped' } & Skipped)

/** A file or line that is not a document. */
export interface Skipped {
  readonly path: string
  /** Category in which the file is counted, such as `.png` or `empty files`. */
  readonly category: string
  /** Reason in a few words: `not supported`. */
  readonly reason: string
}

/** A file to read. */
export interface FileToRead {
  /** Absolute path, or relative to the working directory. */
  readonly file: string
  /** Path as the user would type it. */
  readonly path: string
  /** Value for `sourceFilename`: path relative to the argument, with forward slashes. */
  readonly name: string
  /** True if this file is an argument. It is then reported as failed instead of being skipped. */
  readonly isNamedByUser: boolean
}

/** Returns a failed item if the file is an argument, otherwise a skipped item. */
export function failOrSkip(
  { isNamedByUser, path }: Pick<FileToRead, 'isNamedByUser' | 'path'>,
  skipped: Omit<Skipped, 'path'>,
  problem: Omit<Problem, 'path'>,
): IngestItem {
  return isNamedByUser
    ? { kind: 'failed', problem: { path, ...problem } }
    : { kind: 'skipped', path, ...skipped }
}

/** Returns the item for a pipe, a socket or a device. */
export function specialFileItem(file: FileToRead): IngestItem {
  return failOrSkip(
    file,
    { category: 'special files', reason: 'pipe, socket or device' },
    {
      code: 'unsupported_file_type',
      message: 'it is a pipe, a socket or a device; pipe it in: wb kb ingest NAME - --name FILE',
    },
  )
}
