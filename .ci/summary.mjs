import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Print every test that was skipped and every one that failed; fail when a skipped one is not named in `docs/`. */
const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const tests = testResults.flatMap(file => file.assertionResults)
const of = (...states) => tests.filter(({ status }) => states.includes(status))
const passed = of('passed').length
const failed = of('failed')
const broken = testResults.filter(file => file.status === 'failed' && file.assertionResults.length === 0)

const docs = existsSync('docs')
  ? readdirSync('docs', { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && entry.name.endsWith('.md'))
      .map(entry => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
      .join('\n')
  : ''

let unexplained = 0
for (const { fullName, title } of of('skipped', 'pending', 'todo')) {
  const explained = docs.includes(title)
  if (!explained) unexplained++
  console.log(`skipped: ${fullName}${explained ? '' : ' (not named in docs/)'}`)
}
for (const { fullName } of failed) console.log(`failed: ${fullName}`)
for (const { name } of broken) console.log(`failed: ${name}`)

const wrong = failed.length + broken.length + unexplained
console.log(`${passed} passed, ${wrong} failed`)
process.exitCode = wrong > 0 || passed === 0 ? 1 : 0
