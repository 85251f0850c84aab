import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { agentFlags, knowledgeBaseIds, llmServiceId, toolRules } from '../../src/cli/agents/agent-flags.ts'
import { samplingFields } from '../../src/cli/agents/sampling-flags.ts'
import { anAgent } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { UsageError } from '../../src/cli/faults.ts'
import { findTemplate } from '../../src/cli/find/agent.ts'
import { toolIds } from '../../src/cli/find/tool.ts'
import { agents, agentTemplates } from '../../src/contract/agents.ts'

export default class AgentsCreate extends WbCommand {
  static override summary = 'create an agent, by its own words or from a template'
  static override examples = [
    'wb agents create --template sage',
    'wb agents create support --template bobby --kb handbook',
    'wb agents create clerk --prompt "Answer in one sentence." --tool search_kb --tool list_kbs',
  ]
  static override args = { name: Args.string({ description: "what it is called; the template's own" }) }
  static override flags = {
    template: Flags.string({
      char: 't',
      summary: 'template to begin with; wb agents templates lists them',
      helpValue: 'NAME',
    }),
    ...agentFlags,
  }

  async run() {
    const { args, flags } = await this.parse(AgentsCreate)
    const { workspaceId } = await this.workspaceOrDefault()
    const wanted = args.name === undefined ? await this.templateOf(flags.template) : flags.template
    const template = wanted === undefined ? undefined : await findTemplate(this.resolving, wanted)
    await this.allowTwin(anAgent, args.name ?? template!.name)
    const body = {
      name: args.name ?? template!.name,
      description: flags.description ?? template?.description,
      systemPrompt: flags.prompt ?? template?.systemPrompt,
      llmServiceId: await llmServiceId(this.resolving, workspaceId, flags.llm),
      knowledgeBaseIds: await knowledgeBaseIds(this.resolving, workspaceId, flags.kb),
      toolIds: await this.waitFor('looking', toolIds(this.resolving, workspaceId, flags.tool)),
      toolRules: await toolRules(this.resolving, workspaceId, flags.rule),
      ...samplingFields(flags),
    }
    const made = await this.client.call(agents.create, { params: { workspaceId }, body })
    this.output.made(made, made.agentId, `agent ${made.name}`)
    this.output.next(`wb chat ${shellWord(made.name)}`)
  }

  private templateOf(given: string | undefined): Promise<string> {
    if (given === undefined && !this.canAsk)
      throw new UsageError('NAME or --template is missing', ['wb agents templates'])
    return this.wantOneOf('--template', given, 'Which template?', async () => {
      const { items } = await this.client.call(agentTemplates.list, {})
      return items.map(({ templateId, name, description }) => ({
        id: templateId,
        name: `${name}: ${description}`,
      }))
    })
  }
}
