import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { agentFields } from '../../src/cli/fields/agent.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { lookUpAgentNames } from '../../src/cli/find/names.ts'

export default class AgentsShow extends WbCommand {
  static override summary = 'show an agent and its settings'
  static override examples = ['wb agents show Bobby', 'wb agents show Bobby --json | jq .toolIds']
  static override args = { agent: Args.string({ description: 'name or ID [the only agent]' }) }

  async run() {
    const { args } = await this.parse(AgentsShow)
    const agent = await this.waitFor('loading', findAgent(this.resolveContext, args.agent))
    if (this.output.json) return this.output.value(agent)
    const names = await this.waitFor('loading', lookUpAgentNames(this.client, agent))
    this.output.fields(agent, agentFields(agent, names))
  }
}
