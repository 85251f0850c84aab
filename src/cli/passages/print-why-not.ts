import type { Remedy, WhyNot } from '../../contract/search-explanation.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { wrapWords } from '../terminal/wrap.ts'
import { placeLines } from './explanation-lines.ts'

const indent = '    '
const widthMax = 100

/** A document or result to print, by name. */
export interface WhyNotNames {
  /** Name of the requested document. */
  readonly document: string
  /** Names of other documents by ID. */
  readonly others: ReadonlyMap<string, string>
}

/** Prints why a search does not find a document: sentences in a terminal, fields in a pipe. */
export function printWhyNot(output: Output, answer: WhyNot, names: WhyNotNames): void {
  const { stage, rank, score, cutoffScore, topK, passage, remedies } = answer
  const actions = remedies.map(describeRemedy)
  if (output.json || !output.interactive) {
    output.fields(answer, {
      stage,
      status: answer.status,
      rank,
      limit: topK,
      score,
      'last score': cutoffScore,
      passage: passage?.id,
      remedies: actions.join('; '),
    })
    return
  }
  const { style } = output
  const width = Math.min(widthMax, output.width - 1)
  const mark = stage === 'found' ? style.good('✓') : style.bad('✗')
  const print = (text: string) => output.result(wrapWords(text, width))
  print(`  ${mark} ${describeStage(answer, plainLine(names.document))}`)
  const lines = answer.lists.length === 0 ? [] : placeLines(answer, width - indent.length)
  if (lines.length > 0) output.result('')
  for (const { text, isDim } of lines) output.result(indent + (isDim ? style.dim(text) : text))
  if (answer.beatenBy.length > 0) output.result(`\n  ${style.dim('results')}`)
  for (const { rank: place, id, documentId, score: higher } of answer.beatenBy) {
    const name = plainLine((documentId !== null && names.others.get(documentId)) || id)
    output.result(`${indent}${String(place).padStart(4)}  ${higher.toFixed(4)}  ${name}`)
  }
  if (actions.length > 0) output.result(`\n  ${style.dim('what could bring it in')}`)
  for (const action of actions) print(`${indent}${action}`)
}

function describeStage(
  { stage, status, errorMessage, topK, rank, score, cutoffScore, passage }: WhyNot,
  name: string,
): string {
  const chunk = passage?.chunkIndex == null ? '' : ` (chunk ${passage.chunkIndex})`
  switch (stage) {
    case 'found':
      return `${name} is result ${rank}`
    case 'visibility':
      return `${name} is not visible to the principal`
    case 'ingest':
      return status === 'ready'
        ? `${name} has no passages`
        : `${name} is not ingested: its status is ${status}${errorMessage === null ? '' : ` (${plainLine(errorMessage)})`}`
    case 'filter':
      return `${name} does not match the filter`
    case 'phrase':
      return `No passage of ${name} contains the quoted phrase`
    case 'candidates':
      return `No passage of ${name} is among the best of any list; its best passage${chunk} was not ranked`
    case 'boosts':
      return `boosts moved ${name} from the first ${topK} results to rank ${rank}`
    case 'diversity':
      return `${name} resembles better results: diversity moved its best passage${chunk} to rank ${rank}`
    case 'topK':
      return `${name} is not ${topK === 1 ? 'the first result' : `among the first ${topK} results`}: its best passage${chunk} has rank ${rank} and score ${score?.toFixed(4)}, and the last result has ${cutoffScore?.toFixed(4)}`
  }
}

function describeRemedy({ action, topK, words }: Remedy): string {
  switch (action) {
    case 'raiseTopK':
      return `--limit ${topK}`
    case 'removeFilter':
      return 'search without the filter'
    case 'useWords':
      return `other words than ${plainLine((words ?? []).join(', '))}, which the passage does not contain`
    case 'removeBoosts':
      return 'search without --boost and --recency'
    case 'removeDiversity':
      return 'search without --diversity'
    case 'group':
      return '--group, because other documents have several results'
    case 'removePhrase':
      return 'search without quotation marks'
    case 'waitForVectors':
      return 'wait until the passages have sentence vectors; wb kb show prints the progress'
    case 'wait':
      return 'wait until the document is ingested; wb jobs list prints the progress'
    case 'ingestAgain':
      return 'ingest the document again'
    case 'grantAccess':
      return 'change the policy or the visibility of the document; wb access explain prints the conditions'
  }
}
