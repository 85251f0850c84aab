import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { baseFlag, filterArg, findFilter } from '../../src/cli/find/filter.ts'
import { conditionFlags, parseCondition } from '../../src/cli/passages/parse-condition.ts'
import { filters } from '../../src/contract/filters.ts'

export default class FiltersUpdate extends WbCommand {
  static override summary = 'change a saved filter'
  static override examples = [
    'wb filters update english --kb handbook --where lang=en --where lang=en-GB',
    'wb filters update english --kb handbook --description "British and other"',
  ]
  static override args = { filter: filterArg }
  static override flags = {
    kb: baseFlag,
    name: Flags.string({ summary: 'new name' }),
    description: Flags.string({ summary: 'description of the filter' }),
    ...conditionFlags,
  }

  async run() {
    const { args, flags } = await this.parse(FiltersUpdate)
    const body = { name: flags.name, description: flags.description, filter: parseCondition(flags) }
    this.requireChange(body)
    const base = await this.knowledgeBase(flags.kb)
    const { workspaceId, knowledgeBaseId, knowledgeFilterId } = await findFilter(
      this.resolveContext,
      base,
      args.filter,
    )
    const params = { workspaceId, knowledgeBaseId, knowledgeFilterId }
    const changed = await this.client.call(filters.update, { params, body })
    this.output.reportSaved(changed, knowledgeFilterId, `updated filter ${changed.name}`)
  }
}
