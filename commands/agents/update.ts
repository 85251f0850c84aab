import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { agentFlags, knowledgeBaseIds, llmServiceId, toolRules } from '../../src/cli/agents/agent-flags.ts'
import { noSampling, samplingFields } from '../../src/cli/agents/sampling-flags.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { toolIds } from '../../src/cli/find/tool.ts'
import { agents } from '../../src/contract/agents.ts'

export default class AgentsUpdate extends WbCommand {
  static override summary = 'change what an agent is called, told, and may use'
  static override examples = [
    'wb agents update Maven --kb handbook',
    'wb agents update Maven --prompt "Explain it to a newcomer." --tool search_kb',
    "wb agents update Maven --rule 'mcp:*=ask'",
    'wb agents update Maven --no-kb --no-tool --no-rule',
  ]
  static override args = { agent: Args.string({ description: 'name or id; the only one when left out' }) }
  static override flags = {
    name: Flags.string({ summary: 'what it is called from now on' }),
    ...agentFlags,
    'no-kb': Flags.boolean({ summary: 'all knowledge bases again', exclusive: ['kb'] }),
    'no-tool': Flags.boolean({ summary: 'every built-in tool again', exclusive: ['tool'] }),
    'no-rule': Flags.boolean({ summary: 'no rules for tools any more', exclusive: ['rule'] }),
    'no-sampling': Flags.boolean({
      summary: 'clear temperature, top-p, reasoning effort and stop',
      exclusive: ['temperature', 'top-p', 'reasoning-effort', 'stop'],
    }),
  }

  async run() {
    const { args, flags } = await this.parse(AgentsUpdate)
    const { name, description, prompt, llm, kb, tool, rule } = flags
    const emptied = [flags['no-kb'], flags['no-tool'], flags['no-rule'], flags['no-sampling']]
    const sampling = flags['no-sampling'] ? noSampling : samplingFields(flags)
    const given = Object.values(samplingFields(flags))
    this.requireChange([name, description, prompt, llm, kb, tool, rule, ...emptied, ...given])
    const { workspaceId, agentId } = await this.waitFor('looking', findAgent(this.resolving, args.agent))
    const tools = await this.waitFor('looking', toolIds(this.resolving, workspaceId, tool))
    const body = {
      name,
      description,
      systemPrompt: prompt,
      llmServiceId: llm === undefined ? undefined : await llmServiceId(this.resolving, workspaceId, llm),
      knowledgeBaseIds: flags['no-kb'] ? [] : await knowledgeBaseIds(this.resolving, workspaceId, kb),
      toolIds: flags['no-tool'] ? [] : tools,
      ...sampling,
      toolRules: flags['no-rule'] ? {} : await toolRules(this.resolving, workspaceId, rule),
    }
    const changed = await this.client.call(agents.update, { params: { workspaceId, agentId }, body })
    this.output.made(changed, agentId, `changed agent ${changed.name}`)
    if (llm !== undefined) this.output.next(`wb chat ${shellWord(changed.name)}`)
  }
}
