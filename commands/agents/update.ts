import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { agentFlags, knowledgeBaseIds, llmServiceId } from '../../src/cli/agent-flags.ts'
import { WbCommand } from '../../src/cli/command.ts'
import { findAgent } from '../../src/cli/find-agent.ts'
import { agents } from '../../src/contract/agents.ts'

export default class AgentsUpdate extends WbCommand {
  static override summary = 'change what an agent is called, told, and may use'
  static override examples = [
    'wb agents update Maven --kb handbook',
    'wb agents update Maven --prompt "Explain it to a newcomer." --tool search_kb',
    'wb agents update Maven --no-kb --no-tool',
  ]
  static override args = { agent: Args.string({ description: 'name or id; the only one when left out' }) }
  static override flags = {
    name: Flags.string({ summary: 'what it is called from now on' }),
    ...agentFlags,
    'no-kb': Flags.boolean({ summary: 'all knowledge bases again', exclusive: ['kb'] }),
    'no-tool': Flags.boolean({ summary: 'every built-in tool again', exclusive: ['tool'] }),
  }

  async run() {
    const { args, flags } = await this.parse(AgentsUpdate)
    const { name, description, prompt, llm, kb, tool } = flags
    this.requireChange([name, description, prompt, llm, kb, tool, flags['no-kb'], flags['no-tool']])
    const { workspaceId, agentId } = await this.waitFor('looking', findAgent(this.resolving, args.agent))
    const body = {
      name,
      description,
      systemPrompt: prompt,
      llmServiceId: llm === undefined ? undefined : await llmServiceId(this.resolving, workspaceId, llm),
      knowledgeBaseIds: flags['no-kb'] ? [] : await knowledgeBaseIds(this.resolving, workspaceId, kb),
      toolIds: flags['no-tool'] ? [] : tool,
    }
    const changed = await this.client.call(agents.update, { params: { workspaceId, agentId }, body })
    this.output.made(changed, agentId, `changed agent ${changed.name}`)
  }
}
