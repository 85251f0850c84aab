import { WbCommand } from '../../src/cli/command/command.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbAdoptable extends WbCommand {
  static override summary = 'list collections that you can attach a knowledge base to'
  static override examples = ['wb kb adoptable', 'wb kb adoptable --workspace demo --json']

  async run() {
    await this.parse(KbAdoptable)
    const { workspaceId, name } = await this.workspace()
    const { items } = await this.client.call(kb.adoptable, { params: { workspaceId } })
    const free = items.find(({ attached }) => !attached)
    this.output.list(items, {
      columns: {
        name: { of: row => row.name },
        dimensions: { of: row => row.vectorDimension, as: 'count' },
        metric: { of: row => row.vectorSimilarity },
        embedder: {
          of: ({ vectorService: made }) => made && `${made.provider} ${made.modelName}`,
          as: 'free',
        },
        words: { of: row => (row.lexicalEnabled ? 'yes' : 'no') },
        rerank: { of: row => (row.rerankEnabled ? 'yes' : 'no') },
        'in use': { of: row => (row.attached ? 'yes' : 'no') },
      },
      empty: [
        `no collections in workspace ${name}; a new knowledge base creates its own:`,
        '  wb kb create handbook',
      ],
    })
    if (free && this.output.interactive) this.output.note(`  wb kb create ${free.name} --attach`)
  }
}
