import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { titleOf } from '../../src/cli/shown/resources.ts'
import { documents } from '../../src/contract/documents.ts'

export default class DocumentsList extends WbCommand {
  static override summary = 'list the documents of a knowledge base'
  static override examples = ['wb documents list handbook', 'wb documents list handbook --limit 10 --json']
  static override args = {
    kb: Args.string({ description: 'knowledge base, by name or id; the only one when left out' }),
  }
  static override flags = { kb: Flags.string({ char: 'k', summary: 'the same as KB' }), limit: limitFlag }

  async run() {
    const { args, flags } = await this.parse(DocumentsList)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.kb ?? flags.kb)
    const request = { params: { workspaceId, knowledgeBaseId } }
    const { rows, total } = await this.take(this.client.items(documents.list, request), flags.limit)
    this.output.list(rows, {
      columns: {
        id: { of: row => row.documentId, piped: true },
        title: { of: titleOf, as: 'free' },
        file: { of: row => row.sourceFilename ?? row.sourceDocId ?? row.documentId, as: 'free' },
        status: { of: row => row.status },
        chunks: { of: row => row.chunkTotal, as: 'count' },
        updated: { of: row => row.updatedAt, as: 'time' },
      },
      empty: [`no documents in ${name} yet; add some:`, `  wb kb ingest ${name} ./my-folder`],
      total,
    })
  }
}
