import {
  type Ask,
  type Asker,
  eachBase,
  eachConversation,
  fileForm,
  isHiddenFrom,
  missingId,
  neither,
  question,
  type RouteProbe,
  refuses,
} from './probe.ts'

/** Requests a route that needs a scope that no principal of the drill has. */
const needsScope = (name: string): [string, RouteProbe] => [
  name,
  refuses(async ({ run, principalId }) => {
    const params = { principalId: missingId, keyId: missingId }
    run.expectRefused(name, principalId, await run.ask(name, principalId, { params, body: undefined }))
  }),
]

/** A change of documents that the principal may not see. */
function eachHiddenDocument(name: string, body?: unknown): [string, RouteProbe] {
  const ask: Ask = async ({ run, world, principalId }) => {
    for (const { base, documentId, jobId } of world.documents.filter(isHiddenFrom(principalId))) {
      const params = { knowledgeBaseId: base.knowledgeBaseId, documentId, jobId }
      run.expectRefused(name, principalId, await run.ask(name, principalId, { params, body }))
    }
  }
  return [name, refuses(ask)]
}

/** Names of hidden files, which a principal can guess. */
function hiddenFiles({ world, principalId }: Asker, knowledgeBaseId: string): string[] {
  return world.documents
    .filter(isHiddenFrom(principalId))
    .filter(({ base }) => base.knowledgeBaseId === knowledgeBaseId)
    .map(({ filename }) => filename)
}

const messageBody = { content: question }

/** Changes, which are asked after all reads. Those of hidden content must be refused. */
export const changeProbes: ReadonlyMap<string, RouteProbe> = new Map<string, RouteProbe>([
  eachConversation('conversations.update', () => ({ body: { title: 'taken over' } }), 'refuses'),
  eachConversation('messages.select', () => ({}), 'refuses'),
  eachConversation('attachments.create', () => ({ body: fileForm('x.txt', 'a note') }), 'refuses'),
  eachConversation('attachments.delete', ({ attachmentId }) => ({ params: { attachmentId } }), 'refuses'),
  eachConversation('chat.send', () => ({ body: messageBody }), 'refuses'),
  eachConversation('chat.attach', () => ({}), 'refuses'),
  eachConversation('chat.stop', () => ({}), 'refuses'),
  eachConversation(
    'chat.decide',
    () => ({ params: { approvalId: missingId }, body: { decision: 'once' } }),
    'refuses',
  ),
  eachConversation('conversations.delete', () => ({}), 'refuses'),
  [
    'agents.delete',
    refuses(async ({ run, world, principalId }) => {
      const params = { agentId: world.agentId }
      run.expectRefused('agents.delete', principalId, await run.ask('agents.delete', principalId, { params }))
    }),
  ],
  eachHiddenDocument('documents.update', { visibleTo: ['*'] }),
  eachHiddenDocument('documents.delete'),
  eachHiddenDocument('jobs.cancel'),
  [
    'documents.bulkDelete',
    refuses(
      eachBase(async ({ run, world, principalId }, base, params) => {
        const hidden = world.documents.filter(one => one.base === base).filter(isHiddenFrom(principalId))
        const documentIds = hidden.map(({ documentId }) => documentId).slice(0, 100)
        if (documentIds.length === 0) return
        const { body } = await run.ask('documents.bulkDelete', principalId, { params, body: { documentIds } })
        const deleted = (body.deleted as unknown[] | undefined)?.length ?? 0
        if (deleted > 0)
          run.reportLeak('documents.bulkDelete', principalId, `${deleted} hidden documents deleted`)
        else run.resultOf('documents.bulkDelete').refused++
      }),
    ),
  ],
  [
    'documents.create',
    refuses(async ({ run, world, principalId }) => {
      for (const { base, documentId } of world.documents.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId }
        const response = await run.ask('documents.create', principalId, { params, body: { documentId } })
        run.expectRefused('documents.create', principalId, response, [409])
      }
    }),
  ],
  [
    'documents.ingest',
    neither(
      eachBase(async (asker, { knowledgeBaseId }, params) => {
        for (const sourceFilename of hiddenFiles(asker, knowledgeBaseId)) {
          const body = {
            text: `a text of ${asker.principalId}`,
            sourceFilename,
            overwriteOnNameConflict: true,
          }
          await asker.run.ask('documents.ingest', asker.principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'documents.ingestFile',
    neither(
      eachBase(async (asker, { knowledgeBaseId }, params) => {
        for (const name of hiddenFiles(asker, knowledgeBaseId)) {
          const body = fileForm(name, `a file of ${asker.principalId}`)
          body.set('overwriteOnNameConflict', 'true')
          await asker.run.ask('documents.ingestFile', asker.principalId, { params, body })
        }
      }),
    ),
  ],
  [
    'documents.ingestBatch',
    neither(
      eachBase(async (asker, { knowledgeBaseId }, params) => {
        const lines = hiddenFiles(asker, knowledgeBaseId).map(sourceFilename =>
          JSON.stringify({
            text: `a line of ${asker.principalId}`,
            sourceFilename,
            overwriteOnNameConflict: true,
          }),
        )
        if (lines.length > 0)
          await asker.run.ask('documents.ingestBatch', asker.principalId, {
            params,
            body: `${lines.join('\n')}\n`,
          })
      }),
    ),
  ],
  [
    'records.upsert',
    refuses(async ({ run, world, principalId }) => {
      for (const { base, recordId } of world.records.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId }
        const body = { records: [{ id: recordId, text: 'taken over', visibleTo: ['*'] }] }
        const response = await run.ask('records.upsert', principalId, { params, body })
        run.expectRefused('records.upsert', principalId, response)
      }
    }),
  ],
  [
    'records.delete',
    neither(async ({ run, world, principalId }) => {
      for (const { base, recordId } of world.records.filter(isHiddenFrom(principalId))) {
        const params = { knowledgeBaseId: base.knowledgeBaseId, recordId }
        const { body } = await run.ask('records.delete', principalId, { params })
        if (body.deleted === true) run.reportLeak('records.delete', principalId, `deleted ${recordId}`)
      }
    }),
  ],
  [
    'kb.update',
    refuses(
      eachBase(async ({ run, principalId }, { dsl }, params) => {
        const body =
          dsl === null ? { policyDsl: "'*' <> owner_id", policyEnabled: true } : { policyDsl: null }
        run.expectRefused('kb.update', principalId, await run.ask('kb.update', principalId, { params, body }))
      }),
    ),
  ],
  [
    'kb.create',
    refuses(
      eachBase(async ({ run, principalId }, _, params) => {
        const { body: base } = await run.ask('kb.show', principalId, { params })
        const { vectorCollection, embeddingServiceId, chunkingServiceId } = base
        const services = { embeddingServiceId, chunkingServiceId }
        const body = { name: vectorCollection, attach: true, vectorCollection, ...services }
        run.expectRefused('kb.create', principalId, await run.ask('kb.create', principalId, { body }), [403])
      }),
    ),
  ],
  [
    'kb.delete',
    refuses(
      eachBase(async ({ run, seesAll, principalId }, { knowledgeBaseId }, params) => {
        if (!seesAll(knowledgeBaseId))
          run.expectRefused('kb.delete', principalId, await run.ask('kb.delete', principalId, { params }))
      }),
    ),
  ],
  [
    'workspaces.update',
    refuses(async ({ run, principalId }) => {
      const response = await run.ask('workspaces.update', principalId, { body: { rlacEnabled: false } })
      run.expectRefused('workspaces.update', principalId, response)
    }),
  ],
  [
    'playground.execute',
    refuses(async ({ run, principalId }) => {
      const body = { commandName: 'find', collection: 'drill_1', command: { find: {} } }
      const response = await run.ask('playground.execute', principalId, { body })
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
