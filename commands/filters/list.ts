import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { baseFlag } from '../../src/cli/find/filter.ts'
import { filters } from '../../src/contract/filters.ts'

export default class FiltersList extends WbCommand {
  static override summary = 'list the saved filters of a knowledge base'
  static override examples = ['wb filters list handbook', 'wb filters list handbook --json']
  static override args = {
    kb: Args.string({ description: 'knowledge base name or ID [the only knowledge base]' }),
  }
  static override flags = { kb: baseFlag, limit: limitFlag }

  async run() {
    const { args, flags } = await this.parse(FiltersList)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.kb ?? flags.kb)
    const request = { params: { workspaceId, knowledgeBaseId } }
    const { rows, total } = await this.takeRows(this.client.items(filters.list, request), flags.limit)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.knowledgeFilterId, pipeOnly: true },
        name: { value: row => row.name },
        filter: { value: row => JSON.stringify(row.filter), format: 'flexible' },
        description: { value: row => row.description, format: 'flexible' },
        updated: { value: row => row.updatedAt, format: 'time' },
      },
      empty: [
        `no saved filters in ${name} yet; create one:`,
        `  wb filters create english --kb ${name} --where lang=en`,
      ],
      total,
    })
  }
}
