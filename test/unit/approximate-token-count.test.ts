import { expect, test } from 'vitest'
import { approximateTokenCount } from '../../src/base/approximate-token-count.ts'

/** Texts with their numbers of tokens by `cl100k_base` of OpenAI. */
const counted = [
  ['员工必须在第一个工作日内通知其主管缺勤的原因，并提交医疗证明。公司将根据规定支付工资。'.repeat(20), 900],
  ['従業員は欠勤の理由を最初の就業日に上司に報告し、診断書を提出しなければならない。'.repeat(20), 960],
  [
    'Работник обязан уведомить своего руководителя о причине отсутствия в течение первого рабочего дня. '.repeat(
      20,
    ),
    861,
  ],
  [
    'Työntekijän on ilmoitettava poissaolostaan esimiehelleen mahdollisimman pian sairastumisensa jälkeen. '.repeat(
      20,
    ),
    801,
  ],
  ['🚀🎉👍🏽🔥'.repeat(30), 450],
] as const

test.each(counted)('is near the number of tokens of a model: %.10s', (text, tokens) => {
  expect(approximateTokenCount(text) / tokens).toBeGreaterThan(0.6)
  expect(approximateTokenCount(text) / tokens).toBeLessThan(1.7)
})

test('of an empty text is 0', () => {
  expect(approximateTokenCount('')).toBe(0)
})
