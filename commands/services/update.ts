import * as Flags from '@oclif/core/flags'
import { serviceChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { withoutDefaults } from '../../src/cli/command/without-defaults.ts'
import { lookupTypeFlag, serviceFieldsFrom, serviceFlags } from '../../src/cli/services/flags.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { warnOfProblem } from '../../src/cli/services/service-problem.ts'
import { serviceTypeDetails } from '../../src/cli/services/service-types.ts'

export default class ServicesUpdate extends WbCommand {
  static override summary = 'change a service'
  static override examples = [
    'wb services update passages --max-size 900',
    'wb services update openrouter-gpt-4o-mini --set credentialRef=null --set endpointPath=null',
  ]
  static override args = { service: existingArg(serviceChoices, 'name or ID') }
  static override flags = {
    type: lookupTypeFlag,
    name: Flags.string({ summary: 'new name' }),
    ...withoutDefaults(serviceFlags),
  }

  async run() {
    const { args, flags } = await this.parse(ServicesUpdate)
    const { workspaceId } = await this.workspace()
    const services = new ServiceCalls(this.client, workspaceId)
    const service = await services.find(args.service, flags.type, this.resolveContext)
    const newName = flags.name === undefined ? {} : { name: flags.name }
    const patch = { ...newName, ...serviceFieldsFrom(flags, service.type) }
    this.requireChange(patch)
    const changed = await this.waitFor('changing', services.update(service, patch))
    const { noun } = serviceTypeDetails[changed.type]
    this.output.reportSaved(changed.record, changed.id, `updated ${noun} ${changed.record.name}`)
    await warnOfProblem(services, changed, this.output)
  }
}
