import { WbCommand } from '../../src/cli/command/command.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbAdoptable extends WbCommand {
  static override summary = 'list collections to attach, and which ones are in use'
  static override examples = ['wb kb adoptable', 'wb kb adoptable --workspace demo --json']

  async run() {
    await this.parse(KbAdoptable)
    const { workspaceId, name } = await this.workspace()
    const { items } = await this.client.call(kb.adoptable, { params: { workspaceId } })
    const unattached = items.find(({ attached }) => !attached)
    this.output.list(items, {
      columns: {
        name: { value: row => row.name },
        dimensions: { value: row => row.vectorDimension, format: 'count' },
        metric: { value: row => row.vectorSimilarity },
        embedder: {
          value: ({ vectorService: service }) => service && `${service.provider} ${service.modelName}`,
          format: 'flexible',
        },
        words: { value: row => (row.lexicalEnabled ? 'yes' : 'no') },
        rerank: { value: row => (row.rerankEnabled ? 'yes' : 'no') },
        'in use': { value: row => (row.attached ? 'yes' : 'no') },
      },
      empty: [
        `no collections in workspace ${name}; a new knowledge base creates one:`,
        '  wb kb create handbook',
      ],
    })
    if (unattached && this.output.interactive) this.output.note(`  wb kb create ${unattached.name} --attach`)
  }
}
