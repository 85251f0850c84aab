import { extensionOf } from '../../base/file-extension.ts'
import { type Document, fileHashKey, folderKey } from '../../contract/documents.ts'
import type { FolderFile, FolderState } from './folder-files.ts'

/** A file whose document is stored again. */
export interface ChangedFile {
  readonly file: FolderFile
  /** Documents with its name or its bytes. */
  readonly documents: readonly Document[]
  /**
   * The document that passes on its visibility and its metadata: the one with its name, or else with its bytes. Undefined if there
   * are several, because any of them could be less restricted than the others.
   */
  readonly predecessor: Document | undefined
}

/** Changes that make the documents of a folder match its files. */
export interface SyncPlan {
  readonly added: readonly FolderFile[]
  readonly changed: readonly ChangedFile[]
  readonly renamed: readonly { readonly file: FolderFile; readonly document: Document }[]
  /**
   * Documents whose bytes are now in a file of another type. They must be deleted before it is ingested, because a knowledge base
   * stores each text once.
   */
  readonly retired: readonly Document[]
  readonly deleted: readonly Document[]
  readonly unchanged: number
  /** Files with the same bytes as another file of the folder. A knowledge base stores each text once. */
  readonly duplicates: readonly { readonly file: FolderFile; readonly sameAs: string }[]
  /** Files whose name a document has that does not belong to the folder. */
  readonly taken: readonly FolderFile[]
}

/**
 * Compares a folder with the documents of a knowledge base. Only documents whose metadata names the folder are changed.
 *
 * @param documents  all documents that the caller may see and that belong to its principal. Those of others are not changed, and
 *                   pass on nothing: others could choose their names and their metadata.
 * @param options.adopts  true to take over documents that belong to no folder and have the name of a file
 */
export function planSync(
  { files, unreadable }: Pick<FolderState, 'files' | 'unreadable'>,
  documents: readonly Document[],
  { folderId, adopts }: { folderId: string; adopts: boolean },
): SyncPlan {
  const isOwn = ({ metadata }: Document) => metadata[folderKey] === folderId
  const unmatched = new Set(documents.filter(isOwn))
  const foreign = new Map<string, Document>()
  for (const document of documents)
    if (!isOwn(document) && document.sourceFilename !== null) foreign.set(document.sourceFilename, document)
  const isTaken = ({ name }: FolderFile) => {
    const document = foreign.get(name)
    return document !== undefined && !(adopts && document.metadata[folderKey] === undefined)
  }

  const taken = [...files.values()].filter(isTaken)
  const open = new Map([...files].filter(([, file]) => !isTaken(file)))
  /** Names of files by the hash of a document that the folder has or will have. */
  const nameByHash = new Map<string, string>()
  const settle = (file: FolderFile, document?: Document) => {
    open.delete(file.name)
    if (document) unmatched.delete(document)
    if (!nameByHash.has(file.hash)) nameByHash.set(file.hash, file.name)
  }

  let unchanged = 0
  for (const document of [...unmatched]) {
    const file = open.get(document.sourceFilename ?? '')
    if (!file || document.metadata[fileHashKey] !== file.hash || document.status === 'failed') continue
    settle(file, document)
    unchanged++
  }
  const byHash = new Map<unknown, Document[]>()
  for (const document of unmatched)
    if (document.status !== 'failed')
      byHash.set(document.metadata[fileHashKey], [
        ...(byHash.get(document.metadata[fileHashKey]) ?? []),
        document,
      ])
  const renamed: { file: FolderFile; document: Document }[] = []
  for (const file of [...open.values()]) {
    const candidates = byHash.get(file.hash) ?? []
    const at = candidates.findIndex(document => hasSameExtension(document, file))
    const [document] = at < 0 ? [] : candidates.splice(at, 1)
    if (!document || !unmatched.has(document) || nameByHash.has(file.hash)) continue
    settle(file, document)
    renamed.push({ file, document })
  }
  const changed: ChangedFile[] = []
  const added: FolderFile[] = []
  const duplicates: { file: FolderFile; sameAs: string }[] = []
  const retired = new Set<Document>()
  const remaining = [...unmatched]
  for (const file of [...open.values()]) {
    const sameAs = nameByHash.get(file.hash)
    if (sameAs !== undefined) {
      duplicates.push({ file, sameAs })
      continue
    }
    settle(file)
    const replaced = remaining.filter(({ sourceFilename }) => sourceFilename === file.name)
    const moved = (byHash.get(file.hash) ?? []).filter(document => !replaced.includes(document))
    for (const document of replaced) unmatched.delete(document)
    for (const document of moved) {
      unmatched.delete(document)
      retired.add(document)
    }
    const documents = [...replaced, ...moved]
    const [predecessor, ...others] = replaced.length > 0 ? replaced : moved
    if (predecessor)
      changed.push({ file, documents, predecessor: others.length === 0 ? predecessor : undefined })
    else added.push(file)
  }
  const isKnownToBeGone = ({ sourceFilename }: Document) =>
    !unreadable.some(
      name => name === '' || sourceFilename === name || sourceFilename?.startsWith(`${name}/`),
    ) && !taken.some(({ name }) => name === sourceFilename)
  const deleted = [...unmatched].filter(isKnownToBeGone)
  return { added, changed, renamed, retired: [...retired], deleted, unchanged, duplicates, taken }
}

/** Returns true if a plan changes nothing. */
export function isEmptyPlan({ added, changed, renamed, deleted }: SyncPlan): boolean {
  return added.length + changed.length + renamed.length + deleted.length === 0
}

/** The chunks of a text depend on the type of its file, so a file with another type is not the same document. */
function hasSameExtension({ sourceFilename }: Document, file: FolderFile): boolean {
  return extensionOf(sourceFilename ?? '') === extensionOf(file.name)
}
