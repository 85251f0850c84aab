import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { printByteSizes, statsFields } from '../../src/cli/fields/stats.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbStats extends WbCommand {
  static override summary = 'show counts, sizes, index state and search times'
  static override examples = ['wb kb stats handbook', 'wb kb stats handbook --json | jq .bytes']
  static override args = { name: Args.string({ description: 'name or ID [the only knowledge base]' }) }

  async run() {
    const { args } = await this.parse(KbStats)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.name)
    const stats = await this.waitFor(
      'reading',
      this.client.call(kb.stats, { params: { workspaceId, knowledgeBaseId } }),
    )
    this.output.fields(stats, statsFields(name, stats))
    if (!this.output.json) printByteSizes(this.output, stats)
  }
}
