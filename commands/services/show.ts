import { serviceChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { lookupTypeFlag } from '../../src/cli/services/flags.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { serviceFields } from '../../src/cli/services/service-fields.ts'
import { problemLine } from '../../src/cli/services/service-problem.ts'

export default class ServicesShow extends WbCommand {
  static override summary = 'show a service'
  static override examples = [
    'wb services show passages',
    'wb services show openrouter-gpt-4o-mini --type llm --json',
  ]
  static override args = { service: existingArg(serviceChoices, 'name or ID') }
  static override flags = { type: lookupTypeFlag }

  async run() {
    const { args, flags } = await this.parse(ServicesShow)
    const { workspaceId } = await this.workspace()
    const services = new ServiceCalls(this.client, workspaceId)
    const service = await services.find(args.service, flags.type, this.resolveContext)
    const problem = await services.findProblem(service)
    const record = problem ? { ...service.record, problem } : service.record
    this.output.fields(record, { ...serviceFields(service), problem: problem && problemLine(problem) })
  }
}
