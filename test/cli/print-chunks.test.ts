import { expect, test } from 'vitest'
import { printChunks } from '../../src/cli/chunk-preview/print-chunks.ts'
import { recordedOutput } from '../harness/recorded-output.ts'

const text = `# Keys\n\nCreate a key for each service. Rotate it every month.\n\n## Revoke\n\n${'A revoked key stops working at once. '.repeat(12)}\n\n| Name | Role |\n| --- | --- |\n| Ann | administrator |\n`
const chunkAt = (start: number, end: number, fields: object = {}) => ({
  start,
  end,
  tokens: Math.ceil((end - start) / 4),
  section: 'Keys',
  tableHeads: null,
  page: null,
  slide: null,
  sheet: null,
  ...fields,
})
const revoke = text.indexOf('## Revoke')
const table = text.indexOf('| Ann')
const previews = [
  {
    name: 'passages',
    chunkerId: 'sentence:1',
    chunkTotal: 2,
    chunks: [chunkAt(0, 300), chunkAt(260, text.length, { section: 'Keys > Revoke', page: 2 })],
  },
  {
    name: 'structure',
    chunkerId: 'structure:1',
    chunkTotal: 9,
    chunks: [
      chunkAt(0, revoke),
      chunkAt(revoke, table, { section: 'Keys > Revoke', tokens: 300 }),
      chunkAt(table, text.length, { section: 'Keys > Revoke', tableHeads: 'Name | Role' }),
    ],
  },
]

test.each([80, 120])('prints chunkers side by side in a terminal of %s columns', columns => {
  const { output, written } = recordedOutput({ isTTY: true, columns })
  printChunks(output, { text, previews, isFull: false })
  for (const line of written.stdout.split('\n')) expect(line.length).toBeLessThan(columns)
  expect(written.stdout).toMatchSnapshot()
})

test('prints the whole text of long chunks on request', () => {
  const { output, written } = recordedOutput({ isTTY: true, columns: 80 })
  printChunks(output, { text, previews: [previews[1]!], isFull: true })
  expect(written.stdout.match(/\brevoked/g)).toHaveLength(12)
  expect(written.stdout).not.toContain('⋯')
})

test('removes escape sequences from the text and the names', () => {
  const { output, written } = recordedOutput({ isTTY: true, columns: 80 })
  const chunks = [chunkAt(0, 9, { section: 'a\x1b[31mb' })]
  printChunks(output, {
    text: 'x\x1b]0;t\x07y z',
    previews: [{ name: 'a\x1b[2Jb', chunkerId: 'line:1', chunkTotal: 1, chunks }],
    isFull: false,
  })
  expect(written.stdout).not.toContain('\x1b')
})
