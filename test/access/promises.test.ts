import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const page = readFileSync('docs/security.md', 'utf8')
const promises = section('What shows it')
const attacks = section('Attacks')
const file = /`((?:test|bench)\/[\w/.-]+)`/g

function section(title: string): string[][] {
  const [, text] = page.split(`\n## ${title}\n`)
  return text!
    .split('\n## ')[0]!
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

test('every promise, and every attack, names a test', () => {
  expect(promises.length).toBeGreaterThan(15)
  for (const row of [...promises, ...attacks]) expect(filesIn(row.at(-1)), row.join(' | ')).not.toEqual([])
})

test('every test that the page names is there', () => {
  const named = filesIn(page)
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter(name => !existsSync(name))).toEqual([])
})

test('the attacks are the eighteen, and each that nothing is left to build for is played by number', () => {
  expect(attacks.map(([number]) => number)).toEqual(Array.from({ length: 18 }, (_, at) => String(at + 1)))
  for (const [number, attack, stands, shown] of attacks) {
    const told = filesIn(shown).map(name => readFileSync(name, 'utf8'))
    const isPlayed = told.some(text => new RegExp(`(?:security|decision) ${number}\\b`).test(text))
    expect(isPlayed || stands!.includes('*later*'), `${number}: ${attack}`).toBe(true)
  }
})
