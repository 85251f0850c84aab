import type { Client } from '../../client/client.ts'
import { type ChunkPreview, chunkPreview } from '../../contract/chunk-preview.ts'
import { chunkingPresets } from '../../contract/services/presets.ts'
import { UsageError } from '../errors.ts'
import { ServiceCalls } from '../services/service-calls.ts'

/** A chunker with the name under which the user chose it. */
export interface NamedChunker {
  readonly name: string
  readonly service: Readonly<Record<string, unknown>>
}

/** The chunks of a file by one chunker. */
export type NamedPreview = ChunkPreview['previews'][number] & { readonly name: string }

/**
 * Returns the chunking services or presets with these names; the oldest chunking service of the workspace for no names.
 *
 * @throws UsageError  there is no service or preset with a name
 */
export async function findChunkers(
  client: Client,
  workspaceId: string,
  names: readonly string[],
): Promise<NamedChunker[]> {
  const services: NamedChunker[] = []
  for await (const { record } of new ServiceCalls(client, workspaceId).list('chunking'))
    services.push({ name: record.name, service: record })
  const presets = Object.entries(chunkingPresets).map(([name, service]) => ({ name, service }))
  const known = [...services, ...presets]
  if (names.length === 0) return [services[0] ?? presets[0]!]
  return names.map(name => {
    const match = known.find(chunker => chunker.name === name)
    if (match) return match
    const available = [...new Set(known.map(chunker => chunker.name))].join(', ')
    throw new UsageError(`There is no chunker "${name}". Available chunkers: ${available}.`)
  })
}

/** Requests the chunks of a file by each of the chunkers. */
export async function previewChunks(
  client: Client,
  { workspaceId, file, chunkers }: { workspaceId: string; file: File; chunkers: readonly NamedChunker[] },
): Promise<{ text: string; title: string | null; previews: NamedPreview[] }> {
  const body = new FormData()
  body.set('file', file)
  body.set('chunkers', JSON.stringify(chunkers.map(({ service }) => sizesOf(service))))
  const { text, title, previews } = await client.call(chunkPreview.create, { params: { workspaceId }, body })
  return { text, title, previews: previews.map((preview, at) => ({ name: chunkers[at]!.name, ...preview })) }
}

function sizesOf(service: NamedChunker['service']) {
  const { engine, strategy, chunkUnit, maxChunkSize, minChunkSize, overlapSize } = service
  return { engine, strategy, chunkUnit, maxChunkSize, minChunkSize, overlapSize }
}
