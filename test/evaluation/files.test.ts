import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { EvalResult } from '../../src/evaluation/eval-result.ts'
import { readQuestions } from '../../src/evaluation/read-questions.ts'
import { writeResult } from '../../src/evaluation/result-file.ts'
import { scratchDir } from '../harness/runtime.ts'

test('security: questions are read from regular files only', () => {
  const folder = scratchDir()
  mkdirSync(join(folder, 'qrels'))
  writeFileSync(join(folder, 'qrels/test.tsv'), 'q\td\ts\n1\ta.md\t1\n')
  execFileSync('mkfifo', [join(folder, 'queries.jsonl'), join(folder, 'judgments.jsonl')])
  expect(() => readQuestions(folder)).toThrow('not a regular file')
  expect(() => readQuestions(join(folder, 'judgments.jsonl'))).toThrow('not a regular file')
})

test('security: a lockfile that is a symbolic link is not written', () => {
  const folder = scratchDir()
  const path = join(folder, 'eval.lock.json')
  symlinkSync(join(folder, 'elsewhere'), path)
  expect(() => writeResult(path, {} as EvalResult)).toThrow('is a symbolic link')
})
