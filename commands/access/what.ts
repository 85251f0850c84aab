import * as Flags from '@oclif/core/flags'
import { formatVisibleTo } from '../../src/cli/access/format-visible-to.ts'
import { atFlag, parseAt } from '../../src/cli/access/tool-flags.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { accessTools } from '../../src/contract/access-tools.ts'

const ruleNames = { off: 'everyone', builtIn: 'built-in', policy: 'policy', proposed: 'policy' } as const

export default class AccessWhat extends WbCommand {
  static override summary = 'list what a principal sees'
  static override description =
    'Without --kb, prints for each knowledge base how many documents the principal sees. With --kb, lists these documents.'
  static override examples = [
    'wb access what --principal alice',
    'wb access what --principal alice --kb handbook',
    'wb access what --principal alice --kb handbook --at 7d --json',
  ]
  static override flags = {
    principal: Flags.string({ required: true, summary: 'ID of the principal', helpValue: 'ID' }),
    kb: Flags.string({ char: 'k', summary: 'list the documents of this knowledge base (name or ID)' }),
    at: atFlag,
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(AccessWhat)
    const { principal: principalId, limit } = flags
    const request = { principalId, at: parseAt(flags.at, this.io.clock) }
    if (flags.kb === undefined) await this.printCounts(request, limit)
    else await this.printDocuments(request, flags.kb, limit)
  }

  private async printCounts(body: { principalId: string; at: string | undefined }, limit?: number) {
    const { workspaceId, name } = await this.workspace()
    const items = this.client.items(accessTools.counts, { params: { workspaceId }, body })
    const { rows, total } = await this.takeRows(items, limit)
    this.output.list(rows, {
      columns: {
        'knowledge base': { value: row => row.name },
        sees: { value: row => row.visible, format: 'count' },
        of: { value: row => row.total, format: 'count' },
        rule: { value: row => ruleNames[row.rule] },
        id: { value: row => row.knowledgeBaseId, pipeOnly: true },
      },
      empty: [`no knowledge bases in workspace ${name}`],
      total,
    })
  }

  private async printDocuments(
    body: { principalId: string; at: string | undefined },
    base: string,
    limit?: number,
  ) {
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(base)
    const items = this.client.items(accessTools.documents, {
      params: { workspaceId },
      body: { ...body, knowledgeBaseId },
    })
    const { rows, total } = await this.takeRows(items, limit)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.documentId },
        file: { value: row => row.sourceFilename, format: 'flexible' },
        owner: { value: row => row.ownerPrincipalId, format: 'flexible' },
        'visible to': { value: formatVisibleTo, format: 'flexible' },
      },
      empty: [`${body.principalId} sees no documents in knowledge base ${name}`],
      total,
    })
  }
}
