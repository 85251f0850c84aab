import { expect, test } from 'vitest'
import { audit } from '../../src/contract/audit.ts'
import { documents } from '../../src/contract/documents.ts'
import { WbError } from '../../src/contract/errors.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import { makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

/** A store that fails to delete some documents. */
function refusing(failures: ReadonlyMap<string, Error>) {
  return (store: ContentStore): ContentStore => ({
    ...store,
    async write(changes, rows) {
      for (const change of changes) {
        const failure = change.op === 'deleteDocument' ? failures.get(change.documentId) : undefined
        if (failure) throw failure
      }
      return store.write(changes, rows)
    },
  })
}

test('a bulk delete reports the reason for each failure, and the audit record counts deleted documents', async () => {
  const failures = new Map<string, Error>()
  const wb = await open({ content: refusing(failures) })
  const base = await makeBase(wb)
  const ids: string[] = []
  for (const text of ['One.', 'Two.', 'Three.', 'Four.'])
    ids.push((await base.ingest(text)).document.documentId)
  const [denied, broken, ...deleted] = ids as [string, string, ...string[]]
  failures.set(denied, new WbError('policy_denied', 'the policy does not let you change this document'))
  failures.set(broken, new TypeError('cannot read properties of undefined, in /var/lib/store.db'))
  const outcome = await wb.call(documents.bulkDelete, { params: base.params, body: { documentIds: ids } })
  expect(outcome).toEqual({
    deleted,
    failed: [
      { documentId: denied, code: 'policy_denied', message: expect.stringContaining('policy') },
      { documentId: broken, code: 'delete_failed', message: 'the document could not be deleted' },
    ],
  })
  expect((await base.documents()).map(({ documentId }) => documentId)).toEqual([denied, broken])
  expect(wb.loggedProblems.map(({ facts }) => facts.documentId)).toEqual([broken])
  const { workspaceId } = base.params
  const { items } = await wb.callAsOperator(audit.list, {
    params: { workspaceId },
    query: { action: 'document.delete' },
  })
  expect(items).toMatchObject([{ details: { count: 2 } }])
})
