import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

/**
 * Prints every test of the reports that was skipped or failed, and the counts:
 * `summary.mjs REPORT… REPEATED`. Fails when a skipped test is not named in `docs/`, and when a report is empty or has no
 * test that passed, because its run broke off. The files of REPEATED, which may be empty, count as they ended there.
 *
 * `summary.mjs --failed-files REPORT…` prints the paths of the files that failed, one on a line.
 */
const read = path => ({
  path,
  files: statSync(path).size > 0 ? JSON.parse(readFileSync(path, 'utf8')).testResults : [],
})
if (process.argv[2] === '--failed-files') {
  const failed = process.argv
    .slice(3)
    .flatMap(path => read(path).files.filter(({ status }) => status === 'failed'))
  for (const { name } of failed) console.log(relative(process.cwd(), name))
  process.exit()
}
const reports = process.argv.slice(2, -1).map(read)
const repeated = read(process.argv.at(-1))
const files = reports
  .flatMap(report => report.files)
  .map(file => repeated.files.find(({ name }) => name === file.name) ?? file)
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
for (const { name } of repeated.files) console.log(`repeated: ${relative(process.cwd(), name)}`)
for (const { name } of unloaded) console.log(`failed: ${name}`)
for (const path of broken) console.log(`failed: no test of ${path} passed`)

const wrong = failed.length + unloaded.length + broken.length + unexplained
console.log(`${of('passed').length} passed, ${wrong} failed`)
process.exitCode = wrong > 0 ? 1 : 0
