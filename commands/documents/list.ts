import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { documentTitle } from '../../src/cli/fields/resources.ts'
import { statusTone } from '../../src/cli/fields/status-tone.ts'
import { type Document, documents } from '../../src/contract/documents.ts'
import { trash } from '../../src/contract/trash.ts'

export default class DocumentsList extends WbCommand {
  static override summary = 'list the documents of a knowledge base'
  static override examples = [
    'wb documents list handbook',
    'wb documents list handbook --limit 10 --json',
    'wb documents list handbook --deleted',
  ]
  static override args = {
    kb: Args.string({ description: 'knowledge base name or ID [the only knowledge base]' }),
  }
  static override flags = {
    kb: Flags.string({ char: 'k', summary: 'same as the argument KB' }),
    deleted: Flags.boolean({ summary: 'list deleted documents that you can restore' }),
    limit: limitFlag,
  }

  async run() {
    const { args, flags } = await this.parse(DocumentsList)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.kb ?? flags.kb)
    const request = { params: { workspaceId, knowledgeBaseId } }
    if (flags.deleted) return this.listDeleted(request, name, flags.limit)
    const { rows, total } = await this.takeRows(this.client.items(documents.list, request), flags.limit)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.documentId, pipeOnly: true },
        title: { value: documentTitle, format: 'flexible' },
        file: { value: documentFile, format: 'flexible' },
        status: { value: row => row.status, tone: row => statusTone(row.status) },
        chunks: { value: row => row.chunkTotal, format: 'count' },
        updated: { value: row => row.updatedAt, format: 'time' },
      },
      empty: [`no documents in ${name} yet; ingest some:`, `  wb kb ingest ${name} ./my-folder`],
      total,
    })
  }

  private async listDeleted(
    request: { params: { workspaceId: string; knowledgeBaseId: string } },
    name: string,
    limit: number | undefined,
  ) {
    const { rows, total } = await this.takeRows(this.client.items(trash.list, request), limit)
    this.output.list(rows, {
      columns: {
        id: { value: ({ document }) => document.documentId, pipeOnly: true },
        title: { value: ({ document }) => documentTitle(document), format: 'flexible' },
        file: { value: ({ document }) => documentFile(document), format: 'flexible' },
        chunks: { value: ({ document }) => document.chunkTotal, format: 'count' },
        deleted: { value: row => row.deletedAt, format: 'time' },
        expires: { value: row => row.expiresAt, format: 'due' },
      },
      empty: [`no deleted documents in ${name} can be restored`],
      total,
    })
  }
}

/** Returns the file name of a document, else its source ID or ID. */
function documentFile({ sourceFilename, sourceDocId, documentId }: Document): string {
  return sourceFilename ?? sourceDocId ?? documentId
}
