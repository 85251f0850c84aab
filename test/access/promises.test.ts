import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const page = readFileSync('docs/security.md', 'utf8')
const promises = rowsOf(section(page, '## Tests of the guarantees'))
const rules = section(page, '## Rules')
  .split(/^### Rule (?=\d)/m)
  .slice(1)
  .map(text => ({ number: Number.parseInt(text, 10), text }))
const file = /`((?:test|bench)\/[\w/.-]+)`/g

function section(text: string, heading: string): string {
  return text.split(`\n${heading}\n`)[1]!.split('\n## ')[0]!
}

function rowsOf(text: string): string[][] {
  return text
    .split('\n')
    .filter(line => /^\| (?!---)/.test(line))
    .slice(1)
    .map(line =>
      line
        .split('|')
        .map(cell => cell.trim())
        .slice(1, -1),
    )
}

function filesIn(cell: string | undefined): string[] {
  return [...cell!.matchAll(file)].map(([, name]) => name!)
}

test('every promise and every rule names a test', () => {
  expect(promises.length).toBeGreaterThan(15)
  for (const row of promises) expect(filesIn(row.at(-1)), row.join(' | ')).not.toEqual([])
  for (const { number, text } of rules) expect(filesIn(text), `rule ${number}`).not.toEqual([])
})

test('every test named on the page exists', () => {
  const named = filesIn(page)
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter(name => !existsSync(name))).toEqual([])
})

test('the rules are numbered from 1 to 20', () => {
  expect(rules.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, at) => at + 1))
})

test('a rule cites its number in at least one of its tests, unless the rule is planned', () => {
  const cites = (name: string, number: number) =>
    new RegExp(`(?:security rule |#rule-)${number}\\b`).test(readFileSync(name, 'utf8'))
  const missing = rules.filter(
    ({ number, text }) => !text.includes('*Planned*') && !filesIn(text).some(name => cites(name, number)),
  )
  expect(missing.map(({ number }) => number)).toEqual([])
})
