import { expect } from 'vitest'
import { kb } from '../../src/contract/knowledge.ts'
import { rerankingServices } from '../../src/contract/services.ts'
import { type Base, makeBase } from './resources.ts'
import type { TestRuntime } from './runtime.ts'

export const question = 'wing flutter'
/** Texts of the documents in {@link makeRerankedBase}. Words and vectors do not rank `the wing alone` first. */
const texts = [
  'wing flutter at high speed',
  'the wing alone',
  'flutter of a panel',
  'a wing and its flutter, rank 1',
]

/** Creates a knowledge base with four documents, and a reranking service. */
export async function makeRerankedBase(wb: TestRuntime, service: object): Promise<Base> {
  const base = await makeBase(wb)
  for (const text of texts) await base.ingest(text)
  const path = `/api/v1/workspaces/${base.params.workspaceId}/reranking-services`
  const { body, status, text } = await wb.send(`POST ${path}`, { name: 'reranker', ...service })
  expect(status, text).toBe(201)
  const rerankingServiceId = String(body.rerankingServiceId)
  await wb.call(kb.update, { params: base.params, body: { rerankingServiceId } })
  return base
}

/** Searches for {@link question}. Returns the texts and scores of the hits, and the ignored fields of the request. */
export async function searchTexts(wb: TestRuntime, base: Base, fields: object = {}) {
  const { body, headers, status, text } = await wb.send(`POST ${base.path}/search`, {
    text: question,
    ...fields,
  })
  expect(status, text).toBe(200)
  const hits = body as unknown as { score: number; payload: { chunkText: string } }[]
  return {
    texts: hits.map(hit => hit.payload.chunkText),
    scores: hits.map(hit => hit.score),
    ignored: headers.get('x-workbase-ignored'),
  }
}

/** Returns the problem of the reranking service of a knowledge base. */
export async function showProblem({ call }: TestRuntime, base: Base) {
  const { workspaceId } = base.params
  const rerankingServiceId = (await base.show()).rerankingServiceId!
  const params = { workspaceId, rerankingServiceId }
  return (await call(rerankingServices.show, { params, query: { includeProblem: 'true' } })).problem
}
