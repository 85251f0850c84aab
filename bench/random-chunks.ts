/** Random text with word frequencies of Zipf's law, the same in every run. */

const vocabularySize = 200_000
const exponent = 1.07
/** Number of the most frequent words, which queries leave out. */
const stopwordCount = 60
const meanWords = 110

/** A chunk as ranks of words. */
export interface RandomChunk {
  readonly title: readonly number[]
  readonly text: readonly number[]
}

let state = 1
/** @see https://en.wikipedia.org/wiki/Xorshift */
export function random(): number {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return (state >>> 0) / 2 ** 32
}

const cumulative = new Float64Array(vocabularySize)
for (let rank = 0, sum = 0; rank < vocabularySize; rank++) {
  sum += (rank + 1) ** -exponent
  cumulative[rank] = sum
}

/** Draws the rank of a word. */
function drawWord(): number {
  const wanted = random() * cumulative[vocabularySize - 1]!
  let [low, high] = [0, vocabularySize - 1]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (cumulative[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return low
}

export function drawChunk(): RandomChunk {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const length = Math.max(5, Math.round(meanWords * Math.exp(0.4 * normal - 0.08)))
  const draw = (count: number) => Array.from({ length: count }, drawWord)
  return { title: draw(4 + Math.floor(7 * random())), text: draw(length) }
}

/** Returns a word of letters, so that analyzers do not split it. */
export function wordOf(rank: number): string {
  let letters = ''
  for (let rest = rank + 26; rest > 0; rest = Math.floor(rest / 26))
    letters += 'abcdefghijklmnopqrstuvwxyz'[rest % 26]
  return `${letters}k`
}

/** Draws the words of a query from a chunk. */
export function drawQuery(chunk: RandomChunk): string[] {
  const content = chunk.text.filter(rank => rank >= stopwordCount)
  const count = 3 + Math.floor(6 * random())
  return [
    ...new Set(
      Array.from({ length: count }, () => wordOf(content[Math.floor(random() * content.length)] ?? 99)),
    ),
  ]
}
