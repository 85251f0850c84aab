import { expect, test } from 'vitest'
import { idsFound, ingest, itemsOf, openRestrictedWorkspace } from '../../harness/rows.ts'

/** Two documents of `root` in a knowledge base. The metadata of the second one contains a key `status`. */
async function openTwoDocuments() {
  const { wb, base, as } = await openRestrictedWorkspace()
  const root = as('root')
  const plain = await ingest(root, base, { text: 'A turbine.', sourceFilename: 'plain.md' })
  const metadata = { status: 'open' }
  await ingest(root, base, { text: 'Another turbine.', sourceFilename: 'open.md', metadata })
  const setPolicy = async (policyDsl: string) => {
    const ids = { DOCUMENT: plain.split('/').at(-1)!, BASE: base.split('/').at(-1)! }
    const dsl = policyDsl.replace(/DOCUMENT|BASE/g, name => ids[name as keyof typeof ids])
    expect((await wb.send(`PATCH ${base}`, { policyEnabled: true, policyDsl: dsl })).status).toBe(200)
  }
  /** Returns the file names of the documents that alice sees, after checking that she sees their chunks, too. */
  const visibleNames = async () => {
    const listed = itemsOf(await as('alice')(`GET ${base}/documents`))
    const chunkIds = listed.map(({ documentId }) => `${documentId}:0`)
    expect((await idsFound(as('alice'), base, 'turbine')).sort()).toEqual(chunkIds.sort())
    return listed.map(({ sourceFilename }) => sourceFilename)
  }
  return { root, plain, setPolicy, visibleNames }
}

const [plain, open] = ['plain.md', 'open.md']

test('a policy gives the same result for documents and their chunks, for each column', async () => {
  const { setPolicy, visibleNames } = await openTwoDocuments()
  const policies: [policy: string, visible: string[]][] = [
    ["status = 'ready'", [plain]],
    ["status = 'open'", [open]],
    ["NOT (status = 'ready')", [open]],
    ["status <> 'ready'", [open]],
    ["status IN ('ready', 'open')", [plain, open]],
    ["status = 'failed'", []],
    ["documentId = 'DOCUMENT'", [plain]],
    ["knowledgeBaseId = 'BASE'", [plain, open]],
    ["source_filename = 'open.md'", [open]],
    ["owner_principal_id = 'root' AND owner_id = 'root'", [plain, open]],
    ["'root' = ANY(visible_to)", [plain, open]],
    ['chunkIndex = 0', []],
    ['NOT (chunkIndex = 0)', [plain, open]],
  ]
  for (const [policy, visible] of policies) {
    await setPolicy(policy)
    expect(await visibleNames(), policy).toEqual(visible)
  }
})

test('a change of the status changes the visibility of the document and its chunks', async () => {
  const { root, plain: path, setPolicy, visibleNames } = await openTwoDocuments()
  await setPolicy("status = 'ready' OR $principal.admin = 'true'")
  expect(await visibleNames()).toEqual([plain])
  expect((await root(`PATCH ${path}`, { status: 'failed' })).status).toBe(200)
  expect(await visibleNames()).toEqual([])
})
