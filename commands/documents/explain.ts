import { documentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { explanationFields } from '../../src/cli/documents/explanation-fields.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { findCitedDocument } from '../../src/cli/passages/last-search.ts'
import { documents } from '../../src/contract/documents.ts'

export default class DocumentsExplain extends WbCommand {
  static override summary = 'explain how a document was ingested'
  static override description =
    'Shows the stages of the last ingest of a document with their times, and the reason if it failed.'
  static override examples = [
    'wb documents explain guide/keys.md',
    'wb documents explain 2',
    'wb documents explain guide/keys.md --kb handbook --json',
  ]
  static override args = {
    document: existingArg(
      documentChoices,
      'ID, file name, source ID, or passage number from the last search',
    ),
  }
  static override flags = { kb: kbFlag }

  async run() {
    const { args, flags } = await this.parse(DocumentsExplain)
    const { document } = await this.waitFor(
      'loading',
      findCitedDocument(this.resolveContext, args.document, flags.kb),
    )
    const { workspaceId, knowledgeBaseId, documentId } = document
    const params = { workspaceId, knowledgeBaseId, documentId }
    const explanation = await this.client.call(documents.explain, { params })
    this.output.fields(explanation, explanationFields(document, explanation, this.io.clock.now()))
    if (this.output.json) return
    if (explanation.job) this.output.suggest(`wb jobs watch ${explanation.job.jobId}`)
    else if (!explanation.report)
      this.output.note('  no details: it has no text, or an earlier version of the runtime ingested it')
  }
}
