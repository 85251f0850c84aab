import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EvalResult } from '../../src/evaluation/eval-result.ts'
import { type Sandbox, sandboxFactory } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const files = {
  'guide/refunds.md': '# Refunds\n\nA refund is paid within ten days.\n',
  'guide/parcels.md': '# Parcels\n\nA parcel arrives within three days.\n',
  'guide/sea/whales.md': '# Whales\n\nWhales sing of the seas.\n',
}
const questions = `
- question: when is a refund paid
  answers: [refunds.md]
- question: when does a parcel arrive
  answers: [{ document: guide/parcels.md, heading: Parcels, text: three  DAYS }]
- question: how do whales sing
  answers: [{ document: whales.md, text: not there, grade: 1 }, gone.md]
`

const withGuide = sandboxFactory(async sandbox => {
  mkdirSync(join(sandbox.home, 'guide', 'sea'), { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(sandbox.home, name), text)
  writeFileSync(join(sandbox.home, 'questions.yaml'), questions)
  const { status, stderr } = await sandbox.wb(['kb', 'ingest', 'guide', 'guide', '--create'])
  expect(status, stderr).toBe(0)
})

async function evaluate({ wb }: Sandbox, ...args: string[]): Promise<EvalResult> {
  const { status, stdout, stderr } = await wb(['eval', 'run', ...args, '--json'])
  expect(status, stderr).toBe(0)
  return JSON.parse(stdout) as EvalResult
}

test('measures questions, with and without a server, and warns about documents that do not exist', async () => {
  const sandbox = await withGuide()
  const piped = await sandbox.wb(['eval', 'run', 'questions.yaml', '-k', 'guide', '--mode', 'lexical'])
  expect(piped.stderr).toContain('knowledge base guide does not have 1 document of the answers: gone.md')
  const rows = piped.stdout.trim().split('\n')
  expect(rows.map(row => row.split('\t')[0])).toEqual(['ndcg@10', 'recall@10', 'mrr@10', 'map'])
  expect(rows.at(-1)).toMatch(/^map\t\.\d{3}\t\.\d{3} to 1\.000$/)
  const result = await evaluate(sandbox, 'questions.yaml', '--mode', 'lexical')
  expect(result).toMatchObject({ kb: 'guide', settings: { mode: 'lexical' } })
  expect(result.questions.map(question => [question.question, question.rank, question['ndcg@10']])).toEqual([
    ['when is a refund paid', 1, 1],
    ['when does a parcel arrive', 1, 1],
    ['how do whales sing', null, 0],
  ])
  await sandbox.serve()
  expect(await evaluate(sandbox, 'questions.yaml', '--mode', 'lexical')).toEqual(result)
})

test('shows the worst questions in a terminal', async () => {
  const sandbox = await withGuide()
  const { text } = await runInFakeTerminal(sandbox, ['eval', 'run', 'questions.yaml', '--mode', 'lexical'], {
    cols: 80,
  })
  expect(stripSequences(text)).toMatch(
    /ndcg@10 +\.667[\s\S]*worst questions +ndcg@10 +first answer\s+how do whales sing +\.000 +not found\s+3 questions in guide, settings: mode=lexical/,
  )
})

test('reads a BEIR folder and a file of judgments', async () => {
  const sandbox = await withGuide()
  const folder = join(sandbox.home, 'beir')
  mkdirSync(join(folder, 'qrels'), { recursive: true })
  writeFileSync(
    join(folder, 'corpus.jsonl'),
    '{"_id":"a","title":"","text":"Krill is eaten by whales."}\n{"_id":"b","title":"","text":"Parcels are brown."}\n',
  )
  writeFileSync(join(folder, 'queries.jsonl'), '{"_id":"q1","text":"krill"}\n{"_id":"q2","text":"brown"}\n')
  writeFileSync(join(folder, 'qrels', 'dev.tsv'), 'query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\n')
  await sandbox.wb(['kb', 'ingest', 'beir', join(folder, 'corpus.jsonl'), '--create'])
  const ofFolder = await evaluate(sandbox, 'beir', '-k', 'beir')
  expect(ofFolder.questions).toMatchObject([{ id: 'q1', question: 'krill', 'ndcg@10': 1 }])
  const line = (document: string, grade: number) => JSON.stringify({ question: 'krill', document, grade })
  writeFileSync(join(sandbox.home, 'judged.jsonl'), [line('b', 4), line('a', 3), line('b', 0)].join('\n'))
  const ofJudgments = await evaluate(sandbox, 'judged.jsonl', '-k', 'beir')
  expect(ofJudgments.questions).toMatchObject([{ question: 'krill', 'ndcg@10': 1, 'recall@10': 1 }])
})

test('the gate fails if a metric falls by more than the tolerance, or the questions change', async () => {
  const sandbox = await withGuide()
  const { wb, home } = sandbox
  const run = (...flags: string[]) =>
    wb(['eval', 'run', 'questions.yaml', '-k', 'guide', '--mode', 'lexical', ...flags])
  expect(await run('--gate')).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/eval\.lock\.json does not exist/),
  })
  expect((await run('--update')).status).toBe(0)
  expect(await run('--gate')).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('✓ no metric is more than 0.01 below eval.lock.json'),
  })
  writeFileSync(join(home, 'guide', 'refunds.md'), '# Money\n\nIt is transferred soon.\n')
  await wb(['kb', 'ingest', 'guide', 'guide'])
  const failed = await run('--gate')
  expect(failed.status).toBe(1)
  expect(failed.stdout).toContain('ndcg@10\t.333')
  expect(failed.stderr).toContain('ndcg@10 fell from .667 to .333')
  expect(failed.stderr).toContain('1.000 → .000  when is a refund paid')
  expect(failed.stderr).toContain('wb eval run questions.yaml -k guide --mode lexical --update')
  expect((await run('--gate', '--tolerance', '0.4')).status).toBe(0)
  writeFileSync(join(home, 'questions.yaml'), questions.replace('grade: 1', 'grade: 2'))
  const changed = await run('--gate', '--tolerance', '1')
  expect(changed).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('The questions have changed since eval.lock.json was written'),
  })
  expect(
    readFileSync(join(home, 'eval.lock.json'), 'utf8')
      .split('\n')
      .filter(row => row.includes('"question"')),
  ).toHaveLength(3)
})

test.each([
  ['a missing file', undefined, 'does not exist'],
  ['YAML without questions', '{}', 'expected array'],
  ['an unknown key', '- question: a\n  answers: [b]\n  grade: 1', 'question 1: Unrecognized key: "grade"'],
  [
    'a question that occurs twice',
    '- question: a\n  answers: [b]\n- question: a\n  answers: [c]',
    'occurs twice: a',
  ],
  [
    'no relevant answer',
    '- question: a\n  answers: [{ document: b, grade: 0 }]',
    'no question with a relevant answer',
  ],
  ['no known document', '- question: a\n  answers: [b.md]', 'has none of the documents in the answers: b.md'],
])('rejects a questions file with %s', async (_name, text, message) => {
  const { wb, home } = await withGuide()
  if (text !== undefined) writeFileSync(join(home, 'q.yaml'), text)
  const { status, stderr } = await wb(['eval', 'run', 'q.yaml', '-k', 'guide'])
  expect(stderr).toContain(message)
  expect(status).toBe(2)
})
