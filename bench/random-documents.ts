/** Random documents that resemble English text in what ingest depends on: lengths, repeated words, and new words. */
import { stopwords } from '../src/base/words.ts'
import { random, wordOf } from './random-chunks.ts'

const functionWords = [...stopwords].filter(word => word.length > 1)
const endings = ['', '', '', 's', 'ed', 'ing', 'ation', 'ly']
/** Share of the words of a text that are function words, such as `the`. */
const functionShare = 0.42
/** Share of the words that were in the document before. */
const repeatedShare = 0.3
const topicCount = 400
const topicWords = 600
/** Distance between the words of two topics. Neighboring topics have words in common. */
const topicDistance = 50
const vocabularySize = 60_000

export interface RandomDocument {
  readonly title: string
  readonly text: string
}

/** Draws a rank by Zipf's law with exponent 1, from 0 to `count - 1`. */
function drawRank(count: number): number {
  return Math.floor(Math.exp(random() * Math.log(count + 1))) - 1
}

/** Draws a length around a mean; the logarithm of the length has a standard deviation of about `spread`. */
function drawLength(mean: number, spread: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.max(1, Math.round(mean * Math.exp(spread * normal - spread ** 2 / 2)))
}

const contentWord = (rank: number) => wordOf(26 * 26 + rank) + endings[rank % endings.length]!

/** Draws a document with a given mean number of words. */
export function drawDocument(meanWords: number): RandomDocument {
  const topic = Math.floor(random() * topicCount)
  const earlier: string[] = []
  const drawWord = () => {
    if (random() < functionShare) return functionWords[drawRank(functionWords.length)]!
    if (earlier.length > 0 && random() < repeatedShare) return earlier[Math.floor(random() * earlier.length)]!
    const rank =
      random() < 0.4 ? 1_000 + topic * topicDistance + drawRank(topicWords) : drawRank(vocabularySize)
    const word = contentWord(rank)
    earlier.push(word)
    return word
  }
  const drawSentence = () => {
    const words = Array.from({ length: drawLength(19, 0.4) }, drawWord)
    const text = words.map((word, at) => (at > 0 && random() < 0.06 ? `, ${word}` : ` ${word}`)).join('')
    return { words: words.length, text: `${text.charAt(1).toUpperCase()}${text.slice(2)}.` }
  }
  const wanted = drawLength(meanWords, 0.6)
  const paragraphs: string[] = []
  for (let words = 0; words < wanted; ) {
    const sentences = Array.from({ length: drawLength(5, 0.4) }, drawSentence)
    paragraphs.push(sentences.map(({ text }) => text).join(' '))
    words += sentences.reduce((sum, sentence) => sum + sentence.words, 0)
  }
  const title = Array.from({ length: drawLength(6, 0.3) }, drawWord).join(' ')
  return { title, text: paragraphs.join('\n\n') }
}
