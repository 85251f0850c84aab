import type { Wire } from './harness.ts'

export interface Place {
  /** Path of the workspace. */
  readonly workspace: string
  readonly workspaceId: string
  /** Path of the knowledge base. */
  readonly kb: string
  readonly knowledgeBaseId: string
}

let made = 0

/** Returns a name that is unique in this process. */
export function freshName(stem: string): string {
  return `${stem}_${++made}`
}

export async function makeWorkspace(wire: Wire, body: object = {}): Promise<string> {
  const id = await wire.make('/api/v1/workspaces', { name: freshName('workspace'), ...body }, 'workspaceId')
  return `/api/v1/workspaces/${id}`
}

export async function makeKnowledgeBase(wire: Wire, workspace: string, body: object = {}): Promise<string> {
  const path = `${workspace}/knowledge-bases`
  const id = await wire.make(path, { name: freshName('kb'), ...body }, 'knowledgeBaseId')
  return `${path}/${id}`
}

/** An embedding service of the offline provider; clients can also send raw vectors. */
export async function makeMockSpace(
  wire: Wire,
  workspace: string,
  dimension: number,
  metric = 'cosine',
): Promise<string> {
  return wire.make(
    `${workspace}/embedding-services`,
    {
      name: freshName('space'),
      provider: 'mock',
      modelName: 'mock-embedder',
      embeddingDimension: dimension,
      distanceMetric: metric,
    },
    'embeddingServiceId',
  )
}

/** Creates a workspace with a knowledge base that accepts raw vectors of a small dimension. */
export async function makeVectorPlace(
  wire: Wire,
  dimension = 3,
  metric = 'cosine',
  kb: object = {},
): Promise<Place> {
  const workspace = await makeWorkspace(wire)
  const embeddingServiceId = await makeMockSpace(wire, workspace, dimension, metric)
  return place(workspace, await makeKnowledgeBase(wire, workspace, { embeddingServiceId, ...kb }))
}

/** Creates a workspace and a knowledge base with default settings. */
export async function makePlace(wire: Wire, workspaceBody: object = {}, kbBody: object = {}): Promise<Place> {
  const workspace = await makeWorkspace(wire, workspaceBody)
  return place(workspace, await makeKnowledgeBase(wire, workspace, kbBody))
}

/** Ingests a text and returns the ID of its document. */
export async function ingest(wire: Wire, kb: string, body: object): Promise<string> {
  const reply = await wire.send(`POST ${kb}/ingest`, { json: body })
  if (reply.status !== 201) throw new Error(`ingest answered ${reply.status}: ${reply.text}`)
  return (reply.body as { document: { documentId: string } }).document.documentId
}

/** Returns the last segment of a path, which is an ID. */
export function idOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function place(workspace: string, kb: string): Place {
  return { workspace, workspaceId: idOf(workspace), kb, knowledgeBaseId: idOf(kb) }
}
