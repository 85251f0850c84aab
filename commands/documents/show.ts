import { aDocument } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existing } from '../../src/cli/command/existing.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { findCited } from '../../src/cli/passages/last-search.ts'
import { documentFields } from '../../src/cli/shown/resources.ts'

export default class DocumentsShow extends WbCommand {
  static override summary = 'show a document'
  static override examples = [
    'wb documents show 2',
    'wb documents show guide/keys.md',
    'wb documents show guide/keys.md --kb handbook --json',
  ]
  static override args = {
    document: existing(aDocument, 'id, file name, source id, or [n] of the last search'),
  }
  static override flags = { kb: kbFlag }

  async run() {
    const { args, flags } = await this.parse(DocumentsShow)
    const document = await this.waitFor('looking', findCited(this.resolving, args.document, flags.kb))
    this.output.fields(document, documentFields(document))
    this.output.next(`wb documents chunks ${document.documentId}`)
  }
}
