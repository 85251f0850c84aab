import * as Flags from '@oclif/core/flags'
import { findAnyDocument } from '../../src/cli/access/find-any-document.ts'
import { readToolPages } from '../../src/cli/access/read-tool-pages.ts'
import { atFlag, parseAt } from '../../src/cli/access/tool-flags.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { accessTools } from '../../src/contract/access-tools.ts'
import { limits } from '../../src/contract/limits.ts'

export default class AccessWho extends WbCommand {
  static override summary = 'list the principals that see a document'
  static override description =
    'Lists principals of the workspace, principals of its API keys, and principals that the document names. A note says if all other principals see the document, too.'
  static override examples = [
    'wb access who --document plan.md',
    'wb access who --document plan.md --kb handbook --at 2026-01-31',
  ]
  static override flags = {
    document: Flags.string({
      required: true,
      summary: 'ID, file name, source ID or title of the document',
      helpValue: 'NAME',
    }),
    kb: kbFlag,
    at: atFlag,
  }

  async run() {
    const { flags } = await this.parse(AccessWho)
    const at = parseAt(flags.at, this.io.clock)
    const { base, documentId } = await this.waitFor(
      'loading',
      findAnyDocument(this.resolveContext, flags.document, flags.kb),
    )
    const { workspaceId, knowledgeBaseId } = base
    const request = { params: { workspaceId }, body: { knowledgeBaseId, documentId, at } }
    const { items, facts } = await this.waitFor(
      'reading',
      readToolPages(cursor =>
        this.client.call(accessTools.viewers, { ...request, query: { limit: limits.pageMax, cursor } }),
      ),
    )
    const { everyoneElse, rule } = facts
    if (this.output.json) {
      this.output.value({ items, ...facts })
      return
    }
    this.output.list(items, {
      columns: {
        principal: { value: row => row.principalId },
        label: { value: row => row.label, format: 'flexible' },
        role: { value: row => row.role },
        because: { value: row => row.because.join(', '), format: 'flexible' },
      },
      empty: ['no principal sees this document'],
    })
    if (rule === 'off') this.output.note('  row-level access is off, so everyone sees everything')
    else
      this.output.note(
        `  all other principals, which have no attributes, ${everyoneElse ? 'see' : 'do not see'} this document`,
      )
  }
}
