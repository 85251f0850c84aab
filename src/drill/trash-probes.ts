import type { CanaryDocument } from './canaries.ts'
import {
  type ExecuteProbe,
  isHiddenFrom,
  type ProbeContext,
  type RouteProbe,
  readAllPages,
  refuses,
  shows,
} from './probe.ts'

/** Maximum number of documents of a probe. */
const documentsMax = 100

interface TrashedDocuments {
  readonly params: { readonly knowledgeBaseId: string }
  readonly documents: readonly CanaryDocument[]
  readonly entryIds: readonly string[]
}

/** Returns a probe that runs while selected documents of a knowledge base are in the trash. */
function withDeleted(
  selectsOf: (context: ProbeContext) => (document: CanaryDocument) => boolean,
  execute: (context: ProbeContext, deleted: TrashedDocuments) => Promise<void>,
): ExecuteProbe {
  return async context => {
    const { run, fixture } = context
    for (const base of fixture.bases) {
      const params = { knowledgeBaseId: base.knowledgeBaseId }
      const inBase = fixture.documents.filter(document => document.base === base)
      const documents = inBase.filter(selectsOf(context)).slice(0, documentsMax)
      if (documents.length === 0) continue
      const documentIds = documents.map(({ documentId }) => documentId)
      await run.asOperator('documents.bulkDelete', { params, body: { documentIds } })
      const { body } = await run.asOperator('trash.list', { params, query: { limit: documentsMax } })
      const entryIds = (body.items as { entryId: string }[]).map(({ entryId }) => entryId)
      await execute(context, { params, documents, entryIds })
      // If the runtime leaks, a probe may have restored or documents permanently.
      if (entryIds.length > 0) await run.asOperator('trash.bulkRestore', { params, body: { entryIds } })
    }
  }
}

/** Returns a probe that changes hidden entries of the trash. The response must not list any in `field`. */
function probeBulkChange(name: string, field: 'restored' | 'deleted'): [string, RouteProbe] {
  const execute = withDeleted(
    ({ principalId }) => isHiddenFrom(principalId),
    async ({ run, principalId }, { params, entryIds }) => {
      if (entryIds.length === 0) return
      const { body } = await run.request(name, principalId, { params, body: { entryIds } })
      const changed = (body[field] as unknown[] | undefined)?.length ?? 0
      if (changed > 0) run.reportLeak(name, principalId, `${changed} hidden documents ${field}`)
      else run.resultOf(name).refused++
    },
  )
  return [name, refuses(execute)]
}

/**
 * Probes of the trash. Each restores what it has deleted, so they run before the probes of changes, which create documents with
 * the same file names.
 */
export const trashProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  [
    'trash.list',
    shows(
      withDeleted(
        () => () => true,
        async (context, { params, documents }) => {
          const { run, principalId } = context
          const { text, items } = await readAllPages(context, 'trash.list', params)
          run.expectShown('trash.list', principalId, text, documents)
          const visible = documents.filter(({ viewers }) => viewers.has(principalId)).length
          if (items > visible)
            run.reportLeak('trash.list', principalId, `${items} items instead of ${visible}`)
        },
      ),
    ),
  ],
  [
    'trash.restore',
    refuses(
      withDeleted(
        ({ principalId }) => isHiddenFrom(principalId),
        async ({ run, principalId }, { params, entryIds }) => {
          for (const entryId of entryIds) {
            const response = await run.request('trash.restore', principalId, {
              params: { ...params, entryId },
            })
            run.expectRefused('trash.restore', principalId, response)
          }
        },
      ),
    ),
  ],
  probeBulkChange('trash.bulkRestore', 'restored'),
  probeBulkChange('trash.bulkDelete', 'deleted'),
])
