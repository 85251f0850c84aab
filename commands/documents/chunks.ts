import * as Args from '@oclif/core/args'
import { chunksOf } from '../../src/cli/chunks.ts'
import { limitFlag, WbCommand } from '../../src/cli/command.ts'
import { findDocument, kbFlag } from '../../src/cli/find-document.ts'
import { documentName } from '../../src/cli/shown.ts'
import { plain } from '../../src/cli/terminal-text.ts'

export default class DocumentsChunks extends WbCommand {
  static override summary = 'show the chunks of a document, in order'
  static override examples = [
    'wb documents chunks guide/keys.md',
    'wb documents chunks guide/keys.md --json | jq length',
  ]
  static override args = {
    document: Args.string({ required: true, description: 'id, file name or source id' }),
  }
  static override flags = { kb: kbFlag, limit: limitFlag }

  async run() {
    const { args, flags } = await this.parse(DocumentsChunks)
    const document = await this.waitFor('looking', findDocument(this.resolving, args.document, flags.kb))
    const { rows, total } = await this.take(chunksOf(this.client, document), flags.limit)
    const { output } = this
    if (output.interactive && rows.length > 0) {
      for (const { chunkIndex, text } of rows) {
        output.result(`  ${output.style.strong(String(chunkIndex))}`)
        output.result(`${plain(text ?? '').replace(/^/gm, '     ')}\n`)
      }
      if (total) output.note(`  ${rows.length} of ${total}`)
      return
    }
    output.list(rows, {
      columns: { id: { of: row => row.id }, text: { of: row => row.text, as: 'free' } },
      empty: [`${documentName(document)} has no chunks (status ${document.status})`],
      total,
    })
  }
}
