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
  expect(piped.stderr).toContain('no passage of whales.md contains the text "not there" of an answer')
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

/** A result with one score per question, as a file of `wb eval run --json`. */
function resultWith(scores: readonly number[]): string {
  const metrics = (value: number) => ({ 'ndcg@10': value, 'recall@10': value, 'mrr@10': value, map: value })
  const estimate = { value: 0.5, low: 0, high: 1 }
  return JSON.stringify({
    kb: 'guide',
    questionsHash: 'sha256:0',
    settings: {},
    metrics: { 'ndcg@10': estimate, 'recall@10': estimate, 'mrr@10': estimate, map: estimate },
    questions: scores.map((score, index) => ({
      id: `q${index}`,
      question: `q${index}`,
      rank: 1,
      ...metrics(score),
    })),
  })
}

test('compares two saved results without a runtime, with a significance test', async () => {
  const sandbox = await withGuide()
  const { home } = sandbox
  writeFileSync(join(home, 'a.json'), resultWith([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]))
  writeFileSync(join(home, 'b.json'), resultWith([0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 1]))
  const better = await runInFakeTerminal(sandbox, ['eval', 'compare', 'a.json', 'b.json', '--limit', '1'], {
    cols: 100,
  })
  expect(stripSequences(better.text)).toMatch(
    /ndcg@10 +\.500 +\.650 +\+\.150 +\.\d{3} to \.\d{3} +\.0\d\d\s[\s\S]*q7 +\.500 +1\.000 +\+\.500\s+B is better: ndcg@10 \+\.150, p = \.0\d\d, 8 questions/,
  )
  const same = await runInFakeTerminal(sandbox, ['eval', 'compare', 'a.json', 'a.json'], { cols: 100 })
  expect(stripSequences(same.text)).toContain('no significant difference: ndcg@10 .000, p = 1.000')
})

test('compares settings, and settings with a saved result', async () => {
  const { wb } = await withGuide()
  const compare = (...args: string[]) => wb(['eval', 'compare', ...args, '-k', 'guide'])
  const flags = ['--questions', 'questions.yaml']
  const { stdout } = await compare('mode=lexical', 'lexical-weight=0.3,rerank', ...flags, '--json')
  expect(JSON.parse(stdout)).toMatchObject({
    questions: 3,
    a: { mode: 'lexical' },
    b: { lexicalWeight: 0.3, rerank: true },
    metrics: [{ metric: 'ndcg@10', p: 1 }, {}, {}, {}],
  })
  await wb(['eval', 'run', 'questions.yaml', '-k', 'guide', '--update'])
  expect((await compare('eval.lock.json', 'default', ...flags)).stdout).toContain('ndcg@10\t.667\t.667\t.000')
  for (const [args, message] of [
    [['default', 'rerank'], '--questions is missing'],
    [['default', 'weight=2', ...flags], '"weight=2" is neither a setting nor a .json file'],
    [['default', 'lexical-weight=2', ...flags], '"lexical-weight=2" is neither'],
    [['default', 'questions.json', ...flags], 'questions.json does not exist'],
  ] as const)
    expect(await compare(...args)).toMatchObject({ status: 2, stderr: expect.stringContaining(message) })
})

test('tune reports held-out metrics, and that the default is as good', async () => {
  const sandbox = await withGuide()
  const few = await sandbox.wb(['eval', 'tune', 'questions.yaml', '-k', 'guide'])
  expect(few).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('5 folds need at least 10 questions'),
  })
  const many = ['refund', 'paid', 'ten days', 'refund paid', 'refunds within ten days']
  const lines = many.map(question => `- question: ${question}\n  answers: [refunds.md]\n`)
  writeFileSync(join(sandbox.home, 'many.yaml'), lines.join(''))
  const args = ['eval', 'tune', 'many.yaml', '-k', 'guide', '--folds', '2']
  const { text } = await runInFakeTerminal(sandbox, args, { cols: 100 })
  expect(stripSequences(text)).toMatch(
    /lexical weight +held-out ndcg@10[\s\S]*default +1\.000[\s\S]*tuned +1\.000/,
  )
  expect(stripSequences(text)).toContain('The default is as good')
  const { stdout } = await sandbox.wb([...args, '--metric', 'map', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({
    metric: 'map',
    questions: 5,
    lexicalWeight: null,
    foldWeights: [null, null],
  })
})
