import { sha256 } from '../base/id.ts'
import {
  type ExecuteProbe,
  fileForm,
  forEachBase,
  isHiddenFrom,
  missingId,
  neither,
  type ProbeContext,
  probeEachConversation,
  question,
  type RouteProbe,
  refuses,
} from './probe.ts'

/** First line of a file from a workspace with row-level access, whose documents only a caller with `manage:access` may import. */
const importHeader = JSON.stringify({
  format: 'workbase-knowledge-base',
  version: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  name: 'drill_import',
  description: null,
  status: 'active',
  language: null,
  lexical: { enabled: true, analyzer: null, options: {} },
  rowAccess: true,
  policyDsl: null,
  policyEnabled: false,
  embedding: {
    name: 'drill',
    provider: 'drill',
    modelName: 'drill',
    embeddingDimension: 3,
    distanceMetric: 'cosine',
  },
  chunking: { name: 'drill', engine: 'drill', strategy: null },
  reranking: null,
})

/** Requests a route that needs a scope that no principal of the drill has. */
const needsScope = (name: string): [string, RouteProbe] => [
  name,
  refuses(async ({ run, principalId }) => {
    const params = { principalId: missingId, keyId: missingId }
    run.expectRefused(name, principalId, await run.request(name, principalId, { params, body: undefined }))
  }),
]

/** Returns a probe that changes documents that the principal may not see. */
function probeEachHiddenDocument(name: string, body?: unknown): [string, RouteProbe] {
  const execute: ExecuteProbe = async ({ run, fixture, principalId }) => {
    for (const { base, documentId, jobId } of fixture.documents.filter(isHiddenFrom(principalId))) {
      const params = { knowledgeBaseId: base.knowledgeBaseId, documentId, jobId }
      run.expectRefused(name, principalId, await run.request(name, principalId, { params, body }))
    }
  }
  return [name, refuses(execute)]
}

/** Names of hidden files, which a principal can guess. */
function hiddenFiles({ fixture, principalId }: ProbeContext, knowledgeBaseId: string): string[] {
  return fixture.documents
    .filter(isHiddenFrom(principalId))
    .filter(({ base }) => base.knowledgeBaseId === knowledgeBaseId)
    .map(({ filename }) => filename)
}

const messageBody = { content: question }

/** Probes that send changes, after all reads. Changes of hidden content must be refused. */
export const changeProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  probeEachConversation('conversations.update', () => ({ body: { title: 'taken over' } }), 'refuses'),
  probeEachConversation('messages.select', () => ({}), 'refuses'),
  probeEachConversation('attachments.create', () => ({ body: fileForm('x.txt', 'a note') }), 'refuses'),
  probeEachConversation(
    'attachments.delete',
    ({ attachmentId }) => ({ params: { attachmentId } }),
    'refuses',
  ),
  probeEachConversation('chat.send', () => ({ body: messageBody }), 'refuses'),
  probeEachConversation('chat.attach', () => ({}), 'refuses'),
  probeEachConversation('chat.stop', () => ({}), 'refuses'),
  probeEachConversation(
    'chat.decide',
    () => ({ params: { approvalId: missingId }, body: { decision: 'once' } }),
    'refuses',
  ),
  probeEachConversation('conversations.delete', () => ({}), 'refuses'),
  [
    'agents.delete',
    refuses(async ({ run, fixture, principalId }) => {
      const params = { agentId: fixture.agentId }
      run.expectRefused(
        'agents.delete',
        principalId,
        await run.request('agents.delete', principalId, { params }),
      )
    }),
  ],
  probeEachHiddenDocument('documents.update', { visibleTo: ['*'] }),
  probeEachHiddenDocument('documents.delete'),
  probeEachHiddenDocument('jobs.cancel'),
  [
    'documents.bulkDelete',
    refuses(
      forEachBase(async ({ run, fixture, principalId }, base, params) => {
        const hidden = fixture.documents
          .filter(document => document.base === base)
          .filter(isHiddenFrom(principalId))
        const documentIds = hidden.map(({ documentId }) => documentId).slice(0, 100)
        if (documentIds.length === 0) return
        const { body } = await run.request('documents.bulkDelete', principalId, {
          params,
          body: { documentIds },
        })
        const deleted = (body.deleted as unknown[] | undefined)?.length ?? 0
        if (deleted > 0)
          run.reportLeak('documents.bulkDelete', principalId, `${deleted} hidden documents deleted`)
        else run.resultOf('documents.bulkDelete').refused++
      }),
    ),
  ],
  [
    'documents.create',
    refuses(async ({ run, fixture, principalId }) => {
      for (const { base, documentId } of fixture.documents.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId }
        const response = await run.request('documents.create', principalId, { params, body: { documentId } })
        run.expectRefused('documents.create', principalId, response, [409])
      }
    }),
  ],
  // The probes of ingests create documents with the same names.
  [
    'documents.checkFiles',
    neither(
      forEachBase(async (context, { knowledgeBaseId }, params) => {
        const { run, principalId } = context
        const files = hiddenFiles(context, knowledgeBaseId).map(sourceFilename => ({
          sourceFilename,
          fileHash: sha256(sourceFilename),
        }))
        if (files.length === 0) return
        const { body } = await run.request('documents.checkFiles', principalId, { params, body: { files } })
        if ((body.states as unknown[] | undefined)?.some(state => state !== 'new'))
          run.reportLeak('documents.checkFiles', principalId, 'the file name of a hidden document')
      }),
    ),
  ],
  [
    'documents.ingest',
    neither(
      forEachBase(async (context, { knowledgeBaseId }, params) => {
        for (const sourceFilename of hiddenFiles(context, knowledgeBaseId)) {
          const body = {
            text: `a text of ${context.principalId}`,
            sourceFilename,
            overwriteOnNameConflict: true,
          }
          await context.run.request('documents.ingest', context.principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'documents.ingestFile',
    neither(
      forEachBase(async (context, { knowledgeBaseId }, params) => {
        for (const name of hiddenFiles(context, knowledgeBaseId)) {
          const body = fileForm(name, `a file of ${context.principalId}`)
          body.set('overwriteOnNameConflict', 'true')
          await context.run.request('documents.ingestFile', context.principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'documents.ingestBatch',
    neither(
      forEachBase(async (context, { knowledgeBaseId }, params) => {
        const lines = hiddenFiles(context, knowledgeBaseId).map(sourceFilename =>
          JSON.stringify({
            text: `a line of ${context.principalId}`,
            sourceFilename,
            overwriteOnNameConflict: true,
          }),
        )
        if (lines.length > 0)
          await context.run.request('documents.ingestBatch', context.principalId, {
            params,
            body: `${lines.join('\n')}\n`,
          })
      }),
    ),
  ],
  [
    'records.upsert',
    refuses(async ({ run, fixture, principalId }) => {
      for (const { base, recordId } of fixture.records.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId }
        const body = { records: [{ id: recordId, text: 'taken over', visibleTo: ['*'] }] }
        const response = await run.request('records.upsert', principalId, { params, body })
        run.expectRefused('records.upsert', principalId, response)
      }
    }),
  ],
  [
    'records.delete',
    neither(async ({ run, fixture, principalId }) => {
      for (const { base, recordId } of fixture.records.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId, recordId }
        const { body } = await run.request('records.delete', principalId, { params })
        if (body.deleted === true) run.reportLeak('records.delete', principalId, `deleted ${recordId}`)
      }
    }),
  ],
  [
    'kb.update',
    refuses(
      forEachBase(async ({ run, principalId }, { dsl }, params) => {
        const body =
          dsl === null ? { policyDsl: "'*' <> owner_id", policyEnabled: true } : { policyDsl: null }
        run.expectRefused(
          'kb.update',
          principalId,
          await run.request('kb.update', principalId, { params, body }),
        )
      }),
    ),
  ],
  [
    'kb.create',
    refuses(
      forEachBase(async ({ run, principalId }, _, params) => {
        const { body: base } = await run.request('kb.show', principalId, { params })
        const { vectorCollection, embeddingServiceId, chunkingServiceId } = base
        const services = { embeddingServiceId, chunkingServiceId }
        const body = { name: vectorCollection, attach: true, vectorCollection, ...services }
        run.expectRefused(
          'kb.create',
          principalId,
          await run.request('kb.create', principalId, { body }),
          [403],
        )
      }),
    ),
  ],
  [
    'kb.beginImport',
    refuses(async ({ run, principalId }) => {
      const body = { header: importHeader }
      const response = await run.request('kb.beginImport', principalId, { body })
      run.expectRefused('kb.beginImport', principalId, response, [403])
    }),
  ],
  [
    'kb.importLines',
    refuses(
      forEachBase(async ({ run, principalId }, _, params) => {
        const body = { from: 1, lines: ['{"end":{"documents":0,"records":0,"sha256":""}}'] }
        const response = await run.request('kb.importLines', principalId, { params, body })
        run.expectRefused('kb.importLines', principalId, response, [409])
      }),
    ),
  ],
  [
    'kb.delete',
    refuses(
      forEachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        if (!seesAll(knowledgeBaseId))
          run.expectRefused('kb.delete', principalId, await run.request('kb.delete', principalId, { params }))
      }),
    ),
  ],
  [
    'workspaces.update',
    refuses(async ({ run, principalId }) => {
      const response = await run.request('workspaces.update', principalId, { body: { rlacEnabled: false } })
      run.expectRefused('workspaces.update', principalId, response)
    }),
  ],
  [
    'playground.execute',
    refuses(async ({ run, principalId }) => {
      const body = { commandName: 'find', collection: 'drill_1', command: { find: {} } }
      const response = await run.request('playground.execute', principalId, { body })
      // The embedded store has no playground: 422.
      run.expectRefused('playground.execute', principalId, response, [403, 422])
    }),
  ],
  ...[
    'policy.preview',
    'policy.audit',
    'accessTools.explain',
    'accessTools.viewers',
    'accessTools.documents',
    'accessTools.counts',
    'accessTools.diff',
    'principals.list',
    'principals.create',
    'principals.show',
    'principals.update',
    'principals.delete',
    'apiKeys.list',
    'apiKeys.create',
    'apiKeys.show',
    'apiKeys.rotate',
    'apiKeys.revoke',
    'workspaces.delete',
  ].map(needsScope),
])
