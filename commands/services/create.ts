import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { serviceChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { chooseServiceType, composeService } from '../../src/cli/services/compose-service.ts'
import { serviceFieldsFrom, serviceFlags, typeFlag } from '../../src/cli/services/flags.ts'
import { offerRelease } from '../../src/cli/services/offer-release.ts'
import { secretUseOf } from '../../src/cli/services/release-secret.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { warnOfProblem } from '../../src/cli/services/service-problem.ts'
import { serviceTypeDetails } from '../../src/cli/services/service-types.ts'
import { agents } from '../../src/contract/agents.ts'

export default class ServicesCreate extends WbCommand {
  static override summary = 'create a service from fields or a preset'
  static override examples = [
    'wb services create --preset recursive-char-500',
    'wb services create nomic --preset ollama-nomic-embed-text',
    'wb services create gateway --type llm --provider openai --model gpt-4o --credential env:TEAM_KEY',
  ]
  static override args = {
    name: Args.string({ description: 'service name [the name of the preset or model]' }),
  }
  static override flags = {
    type: typeFlag,
    preset: Flags.string({ summary: 'predefined service to start from', helpValue: 'NAME' }),
    ...serviceFlags,
  }

  async run() {
    const { args, flags } = await this.parse(ServicesCreate)
    const prompts = {
      client: this.client,
      canAsk: this.canAsk,
      promptForFlag: this.flagOrPrompt.bind(this),
      chooseForFlag: this.flagOrChoice.bind(this),
    }
    const type = await chooseServiceType(prompts, flags.type, flags.preset)
    const body = await composeService(prompts, type, flags.preset, serviceFieldsFrom(flags, type))
    const name = args.name ?? String(body.name ?? body.modelName ?? body.engine)
    const { workspaceId } = await this.workspaceOrDefault()
    const services = new ServiceCalls(this.client, workspaceId)
    await this.confirmDuplicateName(serviceChoices, name, { type })
    const created = await this.waitFor('creating', services.create(type, { ...body, name }))
    this.output.reportSaved(created.record, created.id, `created ${serviceTypeDetails[type].noun} ${name}`)
    const use = secretUseOf(created)
    const confirm = this.askYesNo.bind(this)
    const note = (line: string) => this.output.note(line)
    if (type === 'llm')
      note(
        `  ${await this.#bindingCommand(workspaceId, name)}${this.output.contextFlags}    makes an agent use it`,
      )
    if (use) await offerRelease({ client: this.client, confirm, note }, use, workspaceId)
    await warnOfProblem(services, created, this.output)
  }

  /**
   * Returns the command that makes an agent use the new service. Ignores errors when listing agents, because the service
   * has already been created.
   */
  async #bindingCommand(workspaceId: string, name: string): Promise<string> {
    const agentsRequest = this.client.call(agents.list, { params: { workspaceId }, query: { limit: 2 } })
    const { items } = await agentsRequest.catch(() => ({ items: [] }))
    const agent = items.length === 1 ? shellWord(items[0]!.name) : 'NAME'
    return `wb agents update ${agent} --llm ${shellWord(name)}`
  }
}
