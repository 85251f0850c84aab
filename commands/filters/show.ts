import { WbCommand } from '../../src/cli/command/command.ts'
import { filterFields } from '../../src/cli/fields/resources.ts'
import { baseFlag, filterArg, findFilter } from '../../src/cli/find/filter.ts'

export default class FiltersShow extends WbCommand {
  static override summary = 'show a saved filter'
  static override examples = [
    'wb filters show english --kb handbook',
    'wb filters show english --kb handbook --json | jq .filter',
  ]
  static override args = { filter: filterArg }
  static override flags = { kb: baseFlag }

  async run() {
    const { args, flags } = await this.parse(FiltersShow)
    const base = await this.knowledgeBase(flags.kb)
    const filter = await findFilter(this.resolveContext, base, args.filter)
    this.output.fields(filter, filterFields(filter))
  }
}
