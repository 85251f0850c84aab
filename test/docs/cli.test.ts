import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { committedManifest } from '../../scripts/manifest.mjs'

interface Listed {
  flags: Record<string, { helpGroup?: string; char?: string }>
}

const page = readFileSync('docs/cli.md', 'utf8')
const { commands } = JSON.parse(committedManifest()) as { commands: Record<string, Listed> }

/** Returns the commands of the overview: `wb kb list | create` is two, `wb api METHOD PATH   …` one. */
function overview(): string[] {
  const [, block] = /## Commands\n\n```\n([\s\S]*?)```/.exec(page)!
  return block!.split('\n').flatMap(line => {
    const several = /^wb ((?:[a-z]+ +)+?)([a-z-]+(?: \| [a-z-]+)+)$/.exec(line)
    if (several) return several[2]!.split(' | ').map(verb => `${several[1]!.trim()} ${verb}`)
    const one = /^wb ([a-z]+(?: [a-z]+)*)/.exec(line)
    return one ? [one[1]!] : []
  })
}

test('docs/cli.md lists every command', () => {
  expect(overview().sort()).toEqual(
    Object.keys(commands)
      .map(id => id.replaceAll(':', ' '))
      .sort(),
  )
})

test('docs/cli.md lists every global flag', () => {
  const everywhere = Object.entries(commands['kb:list']!.flags)
    .filter(([, { helpGroup }]) => helpGroup === 'GLOBAL')
    .map(([name]) => `--${name}`)
  const [, section] = /## Flags that every command has\n([\s\S]*?)\n## /.exec(page)!
  expect([...section!.matchAll(/`(?:-\w, )?(--[a-z-]+)[^`]*` \|/g)].map(([, name]) => name).sort()).toEqual(
    everywhere.sort(),
  )
})

test('README.md names only commands that exist', () => {
  const code = readFileSync('README.md', 'utf8').match(/```[\s\S]*?```|`[^`\n]+`/g)!
  const typed = code.flatMap(text =>
    [...text.matchAll(/\bwb ([a-z]+(?: [a-z-]+)*)/g)].map(([, words]) => words!),
  )
  const isCommand = (words: string) =>
    words.split(' ').some((_, at, all) => all.slice(0, at + 1).join(':') in commands)
  expect(typed.length).toBeGreaterThan(20)
  expect(typed.filter(words => !isCommand(words))).toEqual([])
})
