import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { semanticFlag } from '../../src/cli/command/semantic-flag.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import type { ServiceType } from '../../src/cli/services/service-types.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbCreate extends WbCommand {
  static override summary = 'create a knowledge base'
  static override examples = [
    'wb kb create handbook',
    'wb kb create papers --description "what we read" --workspace demo',
  ]
  static override args = {
    name: Args.string({ required: true, description: 'name: letters, digits and _, starting with a letter' }),
  }
  static override flags = {
    description: Flags.string({ summary: 'description of the contents' }),
    language: Flags.string({ summary: 'language of the documents, such as de' }),
    embedding: Flags.string({
      summary: 'embedding service name or ID [the oldest one in the workspace]',
      helpValue: 'NAME',
    }),
    chunking: Flags.string({
      summary: 'chunking service name or ID [the oldest one in the workspace]',
      helpValue: 'NAME',
    }),
    reranking: Flags.string({ summary: 'reranking service name or ID [none]', helpValue: 'NAME' }),
    attach: Flags.boolean({ summary: 'use the existing collection with this name' }),
    lexical: Flags.boolean({ allowNo: true, summary: 'index words for lexical and hybrid search' }),
    semantic: semanticFlag(),
  }

  async run() {
    const { args, flags } = await this.parse(KbCreate)
    const { workspaceId } = await this.workspaceOrDefault()
    const services = new ServiceCalls(this.client, workspaceId)
    const idOf = async (type: ServiceType, name: string | undefined) =>
      name && (await services.find(name, type, this.resolveContext)).id
    const lexical =
      flags.lexical === undefined ? undefined : { enabled: flags.lexical, analyzer: null, options: {} }
    const body = {
      name: args.name,
      description: flags.description,
      language: flags.language,
      embeddingServiceId: await idOf('embedding', flags.embedding),
      chunkingServiceId: await idOf('chunking', flags.chunking),
      rerankingServiceId: await idOf('reranking', flags.reranking),
      lexical,
      semantic: flags.semantic && flags.semantic === 'on',
      ...(flags.attach && { attach: true, vectorCollection: args.name }),
    }
    const created = await this.client.call(kb.create, { params: { workspaceId }, body })
    this.output.reportSaved(created, created.knowledgeBaseId, `created knowledge base ${created.name}`)
    this.output.suggest(`wb kb ingest ${created.name} ./my-folder`)
  }
}
