import { filterChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { baseFlag, findFilter } from '../../src/cli/find/filter.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { filters } from '../../src/contract/filters.ts'

export default class FiltersDelete extends WbCommand {
  static override summary = 'delete a saved filter'
  static override examples = [
    'wb filters delete english --kb handbook',
    'wb filters delete english --kb handbook --yes',
  ]
  static override args = { filter: existingArg(filterChoices, 'name or ID') }
  static override flags = { kb: baseFlag, yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(FiltersDelete)
    const base = await this.knowledgeBase(flags.kb)
    const { workspaceId, knowledgeBaseId, knowledgeFilterId, name } = await findFilter(
      this.resolveContext,
      base,
      args.filter,
    )
    const target = `filter ${plainLine(name)} of ${base.name}`
    await this.confirmDeletion(target, plainLine(name), flags.yes)
    await this.client.call(filters.delete, { params: { workspaceId, knowledgeBaseId, knowledgeFilterId } })
    this.output.reportDeleted(knowledgeFilterId, `deleted ${target}`)
  }
}
