/**
 * Measures text analysis: chunks per second, time on hostile texts, and retrieval quality on Cranfield with BM25 over
 * all texts.
 *
 * npm run bench:analysis
 */
import { type Analyzer, openAnalyzer } from '../src/base/analysis/analyzer.ts'
import { stem, terms, words } from '../src/base/words.ts'
import { cranfield, qualityAt10, readEntries, readGrades } from '../test/harness/beir.ts'
import { type RankedText, rankByBm25, rankedText } from '../test/harness/ranking.ts'
import { mean, median, table } from './statistics.ts'

const wordsPerChunk = 110
const rounds = 7

const corpus = readEntries(cranfield, 'corpus.jsonl').filter(({ text }) => text)
const allWords = corpus.flatMap(({ text }) => text.split(' '))
const chunks: string[] = []
for (let from = 0; from + wordsPerChunk <= allWords.length; from += wordsPerChunk)
  chunks.push(allWords.slice(from, from + wordsPerChunk).join(' '))

async function throughput(language: string): Promise<string[]> {
  const rate = (analyzer: Analyzer) => {
    const started = performance.now()
    for (const chunk of chunks) analyzer.countTerms(chunk)
    return (1000 * chunks.length) / (performance.now() - started)
  }
  const first: number[] = []
  const later: number[] = []
  for (let round = 0; round < rounds; round++) {
    const analyzer = await openAnalyzer({ language })
    first.push(rate(analyzer))
    later.push(rate(analyzer))
  }
  return [language, median(first).toFixed(0), median(later).toFixed(0)]
}

/** Quality of the words and stems that the built-in embedder uses. */
function qualityOfWords(): string[] {
  const texts = corpus.map(({ _id, title, text }) => {
    const counts = new Map<string, number>()
    for (const word of words(text)) counts.set(stem(word), (counts.get(stem(word)) ?? 0) + 1)
    for (const word of words(title)) counts.set(stem(word), (counts.get(stem(word)) ?? 0) + 3)
    return { id: _id, counts, words: words(text).length + words(title).length }
  })
  return ['words and Porter stems', ...qualityOver(texts, terms)]
}

function qualityOver(texts: readonly RankedText[], termsOf: (query: string) => string[]): string[] {
  const grades = readGrades(cranfield)
  const measured = readEntries(cranfield, 'queries.jsonl').flatMap(({ _id, text }) => {
    const judged = grades.get(_id)
    return judged ? [qualityAt10(rankByBm25(texts, termsOf(text)), judged)] : []
  })
  return (['ndcg', 'recall'] as const).map(name => mean(measured.map(one => one[name])).toFixed(4))
}

async function quality(language: string): Promise<string[]> {
  const analyzer = await openAnalyzer({ language })
  const texts = corpus.map(({ _id, title, text }) => rankedText(analyzer, _id, text, title))
  const termsOf = (query: string) => analyzer.parseQuery(query).terms.map(({ term }) => term)
  return [language, ...qualityOver(texts, termsOf)]
}

const hostile: Record<string, string> = {
  'one word': 'x'.repeat(20_000_000),
  'marks on one letter': `a${'\u0301\u0323'.repeat(5_000_000)}`,
  'single letters with points': 'a.'.repeat(10_000_000),
  'changes of case': 'aB'.repeat(10_000_000),
  'mixed scripts': 'aя漢ก한'.repeat(4_000_000),
  'Chinese without a break': '漢字'.repeat(2_000_000),
  'Thai marks': `ก${'\u0e48\u0e38'.repeat(2_000_000)}`,
}

const languages = ['auto', 'en', 'de', 'fr', 'tr']
const rates: string[][] = []
for (const language of languages) rates.push(await throughput(language))
console.log(table(['language', 'chunks/s at first', 'chunks/s later'], rates))
console.log(table(['analysis', 'nDCG@10', 'recall@10'], [qualityOfWords(), await quality('auto')]))
const analyzer = await openAnalyzer({ language: 'auto' })
console.log(
  table(
    ['hostile text', 'million characters', 'ms'],
    Object.entries(hostile).map(([name, text]) => {
      const started = performance.now()
      analyzer.countTerms(text)
      return [name, (text.length / 1e6).toFixed(0), (performance.now() - started).toFixed(0)]
    }),
  ),
)
