import * as Flags from '@oclif/core/flags'
import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { reportKept, reportStarted, startReindex, watchReindex } from '../../src/cli/reindex/run-reindex.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import type { ServiceType } from '../../src/cli/services/service-types.ts'

export default class KbReindex extends WbCommand {
  static override summary = 'split and embed the documents again'
  static override description =
    'Splits the documents into chunks with the current settings of the chunking service, and embeds the chunks that changed. With --embedding, embeds all chunks with another service. Searches use the previous index until the new one is complete. If it fails or is interrupted, run the command again to continue.'
  static override examples = [
    'wb kb reindex handbook',
    'wb kb reindex handbook --chunking large-chunks',
    'wb kb reindex handbook --embedding openai --async',
  ]
  static override args = { name: existingArg(knowledgeBaseChoices, 'name or ID') }
  static override flags = {
    chunking: Flags.string({ summary: 'chunking service to use from now on', helpValue: 'NAME' }),
    embedding: Flags.string({ summary: 'embedding service to change to', helpValue: 'NAME' }),
    async: Flags.boolean({ summary: 'start a background job, and print its ID' }),
  }

  protected override readonly finishesBackgroundWork = true

  async run() {
    const { args, flags } = await this.parse(KbReindex)
    const { client, output, progress, signal } = this
    const base = await this.knowledgeBase(args.name)
    const services = new ServiceCalls(client, base.workspaceId)
    const idOf = async (type: ServiceType, service: string | undefined) =>
      service === undefined ? undefined : (await services.find(service, type, this.resolveContext)).id
    const body = {
      chunkingServiceId: await idOf('chunking', flags.chunking),
      embeddingServiceId: await idOf('embedding', flags.embedding),
    }
    const context = { client, output, progress, signal, base }
    const job = await startReindex(context, body)
    if (flags.async) {
      reportStarted(context, job)
      return
    }
    const reindexing = await watchReindex(context, job)
    const { rechunked, unchanged, kept } = reindexing.documents
    const chunks = reindexing.job?.result?.chunks
    output.fields(reindexing, { 'split again': rechunked, unchanged, kept, chunks })
    if (output.json) return
    output.note(`  ✓ reindexed ${base.name}`)
    reportKept(context, kept)
  }
}
