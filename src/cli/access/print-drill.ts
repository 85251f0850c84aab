import type { DrillReport } from '../local.ts'
import { formatCount, formatCounted, type Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { wrapWords } from '../terminal/wrap.ts'

/** Prints the report of a drill, in a pipe like in a terminal, so that it can be filed. */
export function printDrill(output: Output, report: DrillReport): void {
  if (output.json) {
    output.value(report)
    return
  }
  const { style, width } = output
  const print = (text: string) => output.result(wrapWords(`  ${text}`, width))
  for (const line of headLines(report)) print(line)
  output.result('')
  output.list(report.routes, {
    columns: {
      route: { value: row => row.route, format: 'flexible' },
      requests: { value: row => row.requests, format: 'count' },
      shown: { value: row => row.shown, format: 'count' },
      refused: { value: row => row.refused, format: 'count' },
      leaks: {
        value: row => row.leaks,
        format: 'count',
        tone: row => (row.leaks > 0 ? 'bad' : undefined),
      },
      missing: {
        value: row => row.wrongRefusals,
        format: 'count',
        tone: row => (row.wrongRefusals > 0 ? 'bad' : undefined),
      },
    },
    isReport: true,
    empty: [],
  })
  if (report.findings.length > 0) {
    output.result('')
    output.list(report.findings, {
      columns: {
        finding: { value: row => (row.kind === 'leak' ? 'leak' : 'missing'), tone: () => 'bad' },
        route: { value: row => row.route, format: 'flexible' },
        principal: { value: row => row.principalId },
        description: { value: row => row.description, format: 'flexible' },
      },
      isReport: true,
      empty: [],
    })
  }
  output.result('')
  print(
    style.dim(
      `W is the workspace, KB the knowledge base, C the conversation. shown: canaries that principals received and may see; refused: requests about hidden content that were refused, as they should be; missing: canaries that principals may see, but did not receive. ${formatCounted(report.omitted.length, 'route')} without content were not tested; --json lists them with the reasons.`,
    ),
  )
  output.result('')
  print(
    report.findings.length === 0
      ? `${style.good('✓')} no leaks: no principal received or changed anything that it may not see`
      : `${style.bad('✗')} ${formatCounted(report.leaks, 'leak')}, ${formatCount(report.wrongRefusals)} missing`,
  )
}

function headLines({
  workspaceName,
  workspaceId,
  version,
  startedAt,
  finishedAt,
  principals,
  principalsTotal,
  policies,
  canaries,
  requests,
}: DrillReport): string[] {
  const recorded = principals.length - 1
  const counted =
    recorded < principalsTotal
      ? `${formatCount(recorded)} of ${formatCounted(principalsTotal, 'principal')}`
      : formatCounted(recorded, 'principal')
  return [
    `Drill of row-level access in workspace ${plainLine(workspaceName)} (${workspaceId})`,
    `${startedAt} to ${finishedAt}, Workbase ${version}`,
    `${counted} and 1 unknown principal, ${formatCounted(policies.length, 'policy', 'policies')}, ${formatCounted(canaries, 'canary', 'canaries')}, ${formatCounted(requests, 'request')}`,
  ]
}
