import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { findAgent, listAgents } from '../../src/cli/find/agent.ts'
import { conversations } from '../../src/contract/conversations.ts'

export default class ConversationsList extends WbCommand {
  static override summary = 'list conversations, newest first'
  static override examples = [
    'wb conversations list',
    'wb conversations list --agent Bobby --limit 10',
    'wb conversations list --search refund --sort activity',
  ]
  static override flags = {
    agent: Flags.string({ char: 'a', summary: 'show only conversations with this agent (name or ID)' }),
    search: Flags.string({ summary: 'show only conversations whose title or messages contain these words' }),
    sort: Flags.option({
      options: ['created', 'activity'] as const,
      default: 'created' as const,
      summary: 'sort by creation or by last activity, newest first',
    })(),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(ConversationsList)
    const { workspaceId, name } = await this.workspace()
    const { search, sort } = flags
    const query = { sort, ...(search !== undefined && { q: search }) }
    const items =
      flags.agent === undefined
        ? this.client.items(conversations.listAll, { params: { workspaceId }, query })
        : this.client.items(conversations.list, {
            params: { workspaceId, agentId: (await findAgent(this.resolveContext, flags.agent)).agentId },
            query,
          })
    const { rows, total } = await this.takeRows(items, flags.limit)
    const agents = await this.waitFor('reading', listAgents(this.resolveContext, workspaceId))
    const agentNames = new Map(agents.map(agent => [agent.agentId, agent.name]))
    this.output.list(rows, {
      columns: {
        id: { value: row => row.conversationId },
        title: { value: row => row.title, format: 'flexible' },
        agent: { value: row => agentNames.get(row.agentId) ?? row.agentId },
        ...(sort === 'activity'
          ? { active: { value: row => row.lastActivityAt, format: 'time' } }
          : { started: { value: row => row.createdAt, format: 'time' } }),
      },
      empty: [
        `no conversations${search === undefined ? '' : ` with ${search}`} in workspace ${name}`,
        search === undefined ? '  wb agents chat' : '  wb conversations list',
      ],
      total,
    })
  }
}
