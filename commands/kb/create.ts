import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbCreate extends WbCommand {
  static override summary = 'create a knowledge base'
  static override examples = [
    'wb kb create handbook',
    'wb kb create papers --description "what we read" --workspace demo',
  ]
  static override args = {
    name: Args.string({ required: true, description: 'name: a letter, then letters, digits or _' }),
  }
  static override flags = {
    description: Flags.string({ summary: 'description of the content' }),
    language: Flags.string({ summary: 'language of its documents' }),
    embedding: Flags.string({
      summary: "ID of an embedding service [the workspace's first]",
      helpValue: 'ID',
    }),
    chunking: Flags.string({ summary: "ID of a chunking service [the workspace's first]", helpValue: 'ID' }),
    attach: Flags.boolean({ summary: 'use the existing collection of that name' }),
    lexical: Flags.boolean({ allowNo: true, summary: 'also index words, for hybrid search' }),
  }

  async run() {
    const { args, flags } = await this.parse(KbCreate)
    const { workspaceId } = await this.workspaceOrDefault()
    const lexical =
      flags.lexical === undefined ? undefined : { enabled: flags.lexical, analyzer: null, options: {} }
    const body = {
      name: args.name,
      description: flags.description,
      language: flags.language,
      embeddingServiceId: flags.embedding,
      chunkingServiceId: flags.chunking,
      lexical,
      ...(flags.attach && { attach: true, vectorCollection: args.name }),
    }
    const made = await this.client.call(kb.create, { params: { workspaceId }, body })
    this.output.made(made, made.knowledgeBaseId, `created knowledge base ${made.name}`)
    this.output.suggest(`wb kb ingest ${made.name} ./my-folder`)
  }
}
