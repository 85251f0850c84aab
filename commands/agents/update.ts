import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import {
  agentFlags,
  parseToolRules,
  resolveKnowledgeBaseIds,
  resolveLlmServiceId,
} from '../../src/cli/agents/agent-flags.ts'
import { defaultSampling, samplingFields } from '../../src/cli/agents/sampling-flags.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { withoutDefaults } from '../../src/cli/command/without-defaults.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { resolveToolIds } from '../../src/cli/find/tool.ts'
import { agents } from '../../src/contract/agents.ts'

export default class AgentsUpdate extends WbCommand {
  static override summary = 'change the settings of an agent'
  static override examples = [
    'wb agents update Maven --kb handbook',
    'wb agents update Maven --prompt "Explain it to a newcomer." --tool search_kb',
    "wb agents update Maven --rule 'mcp:*=ask'",
    'wb agents update Maven --no-kb --no-tool --no-rule',
  ]
  static override args = { agent: Args.string({ description: 'name or ID [the only agent]' }) }
  static override flags = {
    name: Flags.string({ summary: 'new name' }),
    ...withoutDefaults(agentFlags),
    'no-kb': Flags.boolean({ summary: 'search all knowledge bases', exclusive: ['kb'] }),
    'no-tool': Flags.boolean({
      summary: 'clear the list of tools; the agent then has all built-in tools',
      exclusive: ['tool'],
    }),
    'no-rule': Flags.boolean({ summary: 'remove all tool rules', exclusive: ['rule'] }),
    'no-sampling': Flags.boolean({
      summary: 'reset temperature, top-p, reasoning effort and stop sequences to the defaults',
      exclusive: ['temperature', 'top-p', 'reasoning-effort', 'stop'],
    }),
  }

  async run() {
    const { args, flags } = await this.parse(AgentsUpdate)
    const { name, description, prompt, llm, kb, tool, rule } = flags
    const clearingFlags = [flags['no-kb'], flags['no-tool'], flags['no-rule'], flags['no-sampling']]
    const sampling = flags['no-sampling'] ? defaultSampling : samplingFields(flags)
    const samplingValues = Object.values(samplingFields(flags))
    this.requireChange([name, description, prompt, llm, kb, tool, rule, ...clearingFlags, ...samplingValues])
    const { workspaceId, agentId } = await this.waitFor('loading', findAgent(this.resolveContext, args.agent))
    const tools = await this.waitFor('loading', resolveToolIds(this.resolveContext, workspaceId, tool))
    const body = {
      name,
      description,
      systemPrompt: prompt,
      llmServiceId:
        llm === undefined ? undefined : await resolveLlmServiceId(this.resolveContext, workspaceId, llm),
      knowledgeBaseIds: flags['no-kb']
        ? []
        : await resolveKnowledgeBaseIds(this.resolveContext, workspaceId, kb),
      toolIds: flags['no-tool'] ? [] : tools,
      ...sampling,
      toolRules: flags['no-rule'] ? {} : await parseToolRules(this.resolveContext, workspaceId, rule),
    }
    const changed = await this.client.call(agents.update, { params: { workspaceId, agentId }, body })
    this.output.reportSaved(changed, agentId, `updated agent ${changed.name}`)
    if (llm !== undefined) this.output.suggest(`wb chat ${shellWord(changed.name)}`)
  }
}
