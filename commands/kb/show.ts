import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { knowledgeBaseFields } from '../../src/cli/fields/resources.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { formatCount } from '../../src/cli/terminal/output.ts'
import { countItems } from '../../src/cli/terminal/take-first.ts'
import { documents } from '../../src/contract/documents.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbShow extends WbCommand {
  static override summary = 'show a knowledge base and the state of its embedder'
  static override examples = ['wb kb show handbook', 'wb kb show handbook --json | jq .embedder.state']
  static override args = { name: Args.string({ description: 'name or ID [the only knowledge base]' }) }

  async run() {
    const { args } = await this.parse(KbShow)
    const { workspaceId, knowledgeBaseId } = await this.knowledgeBase(args.name)
    const params = { workspaceId, knowledgeBaseId }
    const base = await this.client.call(kb.show, { params })
    if (this.output.json) return this.output.value(base)
    const items = this.client.items(documents.list, { params })
    const documentCount = formatCount(await this.waitFor('counting documents', countItems(items)))
    const { rerankingServiceId } = base
    const services = new ServiceCalls(this.client, workspaceId)
    const reranking =
      rerankingServiceId && (await services.find(rerankingServiceId, 'reranking', this.resolveContext))
    this.output.fields(base, {
      ...knowledgeBaseFields(base),
      reranking: reranking ? reranking.record.name : undefined,
      documents: documentCount,
    })
  }
}
