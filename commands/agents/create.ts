import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import {
  agentFlags,
  parseToolRules,
  resolveKnowledgeBaseIds,
  resolveLlmServiceId,
} from '../../src/cli/agents/agent-flags.ts'
import { samplingFields } from '../../src/cli/agents/sampling-flags.ts'
import { agentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { findTemplate } from '../../src/cli/find/agent.ts'
import { resolveToolIds } from '../../src/cli/find/tool.ts'
import { agents, agentTemplates } from '../../src/contract/agents.ts'

export default class AgentsCreate extends WbCommand {
  static override summary = 'create an agent from a prompt or a template'
  static override examples = [
    'wb agents create --template sage',
    'wb agents create support --template bobby --kb handbook',
    'wb agents create clerk --prompt "Answer in one sentence." --tool search_kb --tool list_kbs',
  ]
  static override args = {
    name: Args.string({ description: 'agent name [the name of the template]' }),
  }
  static override flags = {
    template: Flags.string({
      char: 't',
      summary: 'template to start from; to list templates, run wb agents templates',
      helpValue: 'NAME',
    }),
    ...agentFlags,
  }

  async run() {
    const { args, flags } = await this.parse(AgentsCreate)
    const { workspaceId } = await this.workspaceOrDefault()
    const templateName = args.name === undefined ? await this.chooseTemplate(flags.template) : flags.template
    const template =
      templateName === undefined ? undefined : await findTemplate(this.resolveContext, templateName)
    await this.confirmDuplicateName(agentChoices, args.name ?? template!.name)
    const body = {
      name: args.name ?? template!.name,
      description: flags.description ?? template?.description,
      systemPrompt: flags.prompt ?? template?.systemPrompt,
      llmServiceId: await resolveLlmServiceId(this.resolveContext, workspaceId, flags.llm),
      knowledgeBaseIds: await resolveKnowledgeBaseIds(this.resolveContext, workspaceId, flags.kb),
      toolIds: await this.waitFor('loading', resolveToolIds(this.resolveContext, workspaceId, flags.tool)),
      toolRules: await parseToolRules(this.resolveContext, workspaceId, flags.rule),
      ...samplingFields(flags),
    }
    const created = await this.client.call(agents.create, { params: { workspaceId }, body })
    this.output.reportSaved(created, created.agentId, `created agent ${created.name}`)
    this.output.suggest(`wb chat ${shellWord(created.name)}`)
  }

  private chooseTemplate(templateFlag: string | undefined): Promise<string> {
    if (templateFlag === undefined && !this.canAsk)
      throw new UsageError('NAME or --template is missing', ['wb agents templates'])
    return this.flagOrChoice('--template', templateFlag, 'Which template?', async () => {
      const { items } = await this.client.call(agentTemplates.list, {})
      return items.map(({ templateId, name, description }) => ({
        id: templateId,
        name: `${name}: ${description}`,
      }))
    })
  }
}
