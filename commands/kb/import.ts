import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { importBase } from '../../src/cli/archive/import-base.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'

export default class KbImport extends WbCommand {
  static override summary = 'create a knowledge base from an exported file'
  static override description =
    'Checks the whole file first, and changes nothing if it is damaged. Vectors are stored as they are. If the command is interrupted, the knowledge base is marked as incomplete; run the command again to continue. A file from a workspace with row-level access needs manage:access, and a workspace with row-level access.'
  static override examples = ['wb kb import handbook.wbkb', 'wb kb import handbook.wbkb --name handbook_copy']
  static override args = {
    file: Args.string({ required: true, description: 'file that wb kb export wrote' }),
  }
  static override flags = {
    name: Flags.string({ summary: 'name of the knowledge base [as in the file]' }),
    embedding: Flags.string({
      summary: 'embedding service name or ID [a service with the same model]',
      helpValue: 'NAME',
    }),
  }

  protected override readonly finishesBackgroundWork = true

  async run() {
    const { args, flags } = await this.parse(KbImport)
    const { workspaceId } = await this.workspaceOrDefault()
    const { client, signal, progress, output } = this
    const services = new ServiceCalls(client, workspaceId)
    const embedding =
      flags.embedding && (await services.find(flags.embedding, 'embedding', this.resolveContext))
    if (!existsSync(resolve(this.io.cwd, args.file))) throw new UsageError(`${args.file} not found`)
    const imported = await importBase({
      client,
      workspaceId,
      path: resolve(this.io.cwd, args.file),
      name: flags.name,
      embeddingServiceId: embedding ? embedding.id : undefined,
      signal,
      onProgress: (done, total) => progress.step({ label: 'importing', done, total, unit: 'lines' }),
    })
    progress.end()
    const { base, documents, chunks, isResumed } = imported
    const { name, knowledgeBaseId } = base
    const value = { knowledgeBaseId, name, documents, chunks, isResumed }
    const contents = `${formatCounted(documents, 'document')} and ${formatCounted(chunks, 'chunk')}`
    output.reportSaved(value, knowledgeBaseId, `imported ${contents} into knowledge base ${name}`)
  }
}
