import * as Flags from '@oclif/core/flags'
import { once } from '../../src/base/once.ts'
import { printTestedCases, type TestedCase, toTestedCase } from '../../src/cli/access/test-results.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { exit } from '../../src/cli/command/exit.ts'
import { type AccessCaseReport, testAccessCases } from '../../src/cli/local.ts'
import { resolveTypedPath } from '../../src/cli/resolve-typed-path.ts'
import { accessTools } from '../../src/contract/access-tools.ts'
import type { KnowledgeBase } from '../../src/contract/knowledge.ts'

export default class AccessTest extends WbCommand {
  static override summary = 'test a policy with cases from a file'
  static override description =
    'The exit status is 1 if a case fails. Cases whose documents are in the file need no server. Cases with a documentId use the principals and documents of the runtime.'
  static override examples = [
    'wb access test -f cases.yaml',
    'wb access test -f cases.yaml --kb handbook --json',
  ]
  static override flags = {
    file: Flags.string({ char: 'f', required: true, summary: 'YAML file with the cases', helpValue: 'FILE' }),
    kb: Flags.string({ char: 'k', summary: 'knowledge base of cases with a documentId [the only one]' }),
  }

  async run() {
    const { flags } = await this.parse(AccessTest)
    const report = await testAccessCases(resolveTypedPath(this.io.cwd, flags.file))
    const knowledgeBase = once(() => this.knowledgeBase(flags.kb))
    const tested: TestedCase[] = []
    for (const [index, testCase] of report.cases.entries()) {
      const result = report.results[index]
      tested.push(
        toTestedCase(testCase, result ?? (await this.explainStored(report, testCase, await knowledgeBase()))),
      )
    }
    printTestedCases(this.output, tested)
    if (tested.some(({ passed }) => !passed)) this.exitCode = exit.failed
  }

  /** Explains the decision of a case whose document is in a knowledge base. */
  private async explainStored(
    { policy }: AccessCaseReport,
    { principal: principalId, document }: AccessCaseReport['cases'][number],
    { workspaceId, knowledgeBaseId }: KnowledgeBase,
  ) {
    const { documentId } = document as { documentId: string }
    const body = { principalId, knowledgeBaseId, documentId, policyDsl: policy ?? undefined }
    const { visible, reasons } = await this.client.call(accessTools.explain, {
      params: { workspaceId },
      body,
    })
    return { isVisible: visible, reasons }
  }
}
