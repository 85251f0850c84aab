import * as Flags from '@oclif/core/flags'
import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { CommandFailed } from '../../src/cli/errors.ts'
import { watchJob } from '../../src/cli/jobs/watch-job.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import type { ServiceType } from '../../src/cli/services/service-types.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { kb } from '../../src/contract/knowledge.ts'

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
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.name)
    const services = new ServiceCalls(client, workspaceId)
    const idOf = async (type: ServiceType, service: string | undefined) =>
      service === undefined ? undefined : (await services.find(service, type, this.resolveContext)).id
    const body = {
      chunkingServiceId: await idOf('chunking', flags.chunking),
      embeddingServiceId: await idOf('embedding', flags.embedding),
    }
    const params = { workspaceId, knowledgeBaseId }
    const { job } = await client.call(kb.reindex, { params, body })
    if (flags.async) {
      output.reportSaved(job, job.jobId, `reindexing ${name} in job ${job.jobId}`)
      output.suggest(`wb jobs watch ${job.jobId}`)
      return
    }
    const last = await watchJob(client, job, signal, ({ processed, total }) =>
      progress.step({ label: name, done: processed, total: total ?? 0, unit: 'chunks' }),
    )
    progress.end()
    if (last.status === 'failed')
      throw new CommandFailed(last.errorMessage ?? 'the job failed', ['Run the command again to continue.'])
    const reindexing = await client.call(kb.reindexing, { params })
    const { rechunked, unchanged, kept } = reindexing.documents!
    output.fields(reindexing, { 'split again': rechunked, unchanged, kept, chunks: last.result?.chunks })
    if (output.json) return
    output.note(`  ✓ reindexed ${name}`)
    if (kept > 0)
      output.note(
        `  ${formatCounted(kept, 'document')} could not be split again, because the stored chunks do not contain the whole text; delete and ingest them again`,
      )
  }
}
