import type { IngestInput } from '../../contract/documents.ts'

/** A text on its way into a knowledge base. */
export interface Source {
  /** As the person would type it; said when something is wrong with it. */
  readonly path: string
  readonly body: IngestInput & { readonly sourceFilename: string }
}

/** Why something did not become a document. The code is one of the API, or of the operating system (`EACCES`). */
export interface Problem {
  readonly path: string
  readonly code: string
  readonly message: string
}

/** What a walk meets: a text, something that is wrong, or something that nobody expects to be a document. */
export type Found =
  | { readonly kind: 'source'; readonly source: Source }
  | { readonly kind: 'failed'; readonly problem: Problem }
  | { readonly kind: 'skipped'; readonly as: string }

/** A file to read. */
export interface FileToRead {
  /** Absolute, or relative to the working directory. */
  readonly file: string
  /** As the person would type it. */
  readonly path: string
  /** `sourceFilename`: relative to the argument, with forward slashes. */
  readonly name: string
  /** The person named this very file, so leaving it out without a word is no option. */
  readonly named: boolean
}

/** A code and a message of ours as a problem, or a silent omission where the file was only met on the way. */
export function unfit({ named, path }: FileToRead, as: string, code: string, message: string): Found {
  return named ? { kind: 'failed', problem: { path, code, message } } : { kind: 'skipped', as }
}
