import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Print every test of the reports that was skipped and every one that failed. Fail when a skipped one is not named in
 * `docs/`, and when a report is empty or holds no test that passed, as its run broke off.
 */
const reports = process.argv.slice(2).map(path => ({
  path,
  files: statSync(path).size > 0 ? JSON.parse(readFileSync(path, 'utf8')).testResults : [],
}))
const files = reports.flatMap(report => report.files)
const stateOf = files => files.flatMap(({ assertionResults }) => assertionResults.map(({ status }) => status))
const broken = reports.filter(report => !stateOf(report.files).includes('passed')).map(({ path }) => path)
const unloaded = files.filter(file => file.status === 'failed' && file.assertionResults.length === 0)

const tests = files.flatMap(file => file.assertionResults)
const of = (...states) => tests.filter(({ status }) => states.includes(status))
const failed = of('failed').map(({ fullName }) => fullName)

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
for (const name of failed) console.log(`failed: ${name}`)
for (const { name } of unloaded) console.log(`failed: ${name}`)
for (const path of broken) console.log(`failed: no test of ${path} passed`)

const wrong = failed.length + unloaded.length + broken.length + unexplained
console.log(`${of('passed').length} passed, ${wrong} failed`)
process.exitCode = wrong > 0 ? 1 : 0
