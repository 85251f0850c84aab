import { expect, test } from 'vitest'
import { printDrill } from '../../src/cli/access/print-drill.ts'
import { recordedOutput } from '../harness/recorded-output.ts'

const route = { requests: 1_298, shown: 6, refused: 50, leaks: 1, wrongRefusals: 0 }
const report = {
  version: '1.0.0',
  workspaceId: 'w-1',
  workspaceName: 'acme',
  startedAt: '2026-01-31T05:44:13.878Z',
  finishedAt: '2026-01-31T05:44:20.507Z',
  principals: ['ada', 'drill-unknown-principal'],
  principalsTotal: 1,
  policies: [],
  canaries: 32,
  routes: [{ name: 'kb.search', route: 'POST KB/search', ...route }],
  omitted: [],
  findings: [
    { kind: 'leak', route: 'POST KB/search', principalId: 'ada', description: 'shows a canary' },
  ] as const,
  requests: 1_298,
  leaks: 1,
  wrongRefusals: 0,
}

test('a report of a drill is the same in a pipe as in a wide terminal', () => {
  const [pipe, terminal] = [recordedOutput({ isTTY: false }), recordedOutput({ columns: 500 })]
  printDrill(pipe.output, report)
  printDrill(terminal.output, report)
  expect(pipe.written).toEqual(terminal.written)
  expect(pipe.written.stdout.split('\n')).toEqual([
    '  Drill of row-level access in workspace acme (w-1)',
    '  2026-01-31T05:44:13.878Z to 2026-01-31T05:44:20.507Z, Workbase 1.0.0',
    '  1 principal and 1 unknown principal, 0 policies, 32 canaries, 1,298 requests',
    '',
    '  route           requests  shown  refused  leaks  missing',
    '  POST KB/search     1,298      6       50      1        0',
    '',
    '  finding  route           principal  description',
    '  leak     POST KB/search  ada        shows a canary',
    '',
    expect.stringMatching(/^ {2}W is the workspace/),
    '',
    '  ✗ 1 leak, 0 missing',
    '',
  ])
})
