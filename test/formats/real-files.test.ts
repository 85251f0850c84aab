import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import { readFileText } from '../../src/formats/read-file.ts'

// Read each change of an output before you accept it. The licenses are in README.md.
const folder = join(import.meta.dirname, '..', 'fixtures', 'files')
const files = readdirSync(folder, { withFileTypes: true }).filter(
  entry => entry.isFile() && entry.name !== 'README.md',
)
/** Number of characters of each text that are compared. */
const comparedChars = 8_000

test.each(files.map(({ name }) => name))('reads %s', async name => {
  await expect(await describeFile(name)).toMatchFileSnapshot(join(folder, 'outputs', `${name}.txt`))
})

async function describeFile(name: string): Promise<string> {
  try {
    const { format, title, text } = await readFileText(join(folder, name), name, {
      canBeText: true,
      withProperties: false,
    })
    const headings = text.match(/^#{1,6} .+$/gm) ?? []
    return [
      `format: ${format}`,
      `title: ${title}`,
      `characters: ${text.length}`,
      '',
      ...headings,
      '',
      '-----',
      text.slice(0, comparedChars),
      '',
    ].join('\n')
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return `${error.code}: ${error.message}\n${error.facts.hint}\n`
  }
}
