import { stopwords as englishStopwords, stem as stemEnglish } from '../words.ts'
import { foldAccents } from './fold.ts'

/** Reduces a lowercase word to its stem. */
export type Stem = (word: string) => string

/** Scripts that have stemmers, by the property name of Unicode. */
export type StemmedScript = 'Latin' | 'Cyrillic' | 'Greek' | 'Arabic' | 'Devanagari' | 'Tamil' | 'Armenian'

interface Language {
  /** Scripts of the words that the stemmer and the stop words apply to. */
  readonly scripts: readonly StemmedScript[]
  readonly loadStem?: () => Promise<Stem>
  readonly loadStopwords?: () => Promise<Iterable<string>>
}

/** Stemmers and stop words of a language. */
export interface LoadedLanguage {
  /** BCP-47 code without region, or `auto`. */
  readonly code: string
  readonly stems: ReadonlyMap<StemmedScript, Stem>
  /** Lowercase stop words. */
  readonly stopwords: ReadonlySet<string>
}

const spanishStopwords = `a al algo ante antes aquel aquella aquellas aquellos aquello aún aunque bajo cada como cómo con
  contra cual cuál cuales cuáles cuando cuándo de del desde donde dónde durante e el él ella ellas ello ellos en entre
  era eran es esa esas ese eso esos está están esta estas este esto estos fue fueron ha han hasta hay la las le les lo
  los más me mi mí mis mientras muy ni no nos nosotros nuestra nuestro o os otra otro para pero por porque que qué quien
  quién quienes se sea ser si sí sido sin sobre son su sus también tanto te tu tú tus u un una unas uno unos y ya yo`

const chineseStopwords = `的 了 和 是 在 我 你 您 他 她 它 们 我们 你们 他们 她们 这 那 这个 那个 这些 那些 与 及 或 也 都 就 而 但 但是 并 对 把
  被 让 从 向 到 由 于 以 为 因为 所以 如果 吗 呢 吧 啊 很 哪 哪里 哪个 哪些 什么 怎么 怎样 如何 请问 一个 之 其 着 過 过 們 這 這個 這些 與 對 從 為 嗎
  什麼 怎麼 哪裡 個 可以 能 会 會 要`

const thaiStopwords = `ที่ และ ของ ใน เป็น มี ได้ ให้ ว่า จะ ไม่ กับ นี้ นั้น ก็ จาก โดย แต่ หรือ ซึ่ง คือ อยู่ ไป มา แล้ว ด้วย เพื่อ ถึง ต้อง
  อย่างไร อะไร ไหน ที่ไหน เมื่อ เมื่อไร เมื่อไหร่ ไหม ครับ ค่ะ คะ นะ การ ความ`

function split(list: string): string[] {
  return list.split(/\s+/)
}

const stopwordsOf = (module: Promise<{ stopwords: string[] }>) => module.then(({ stopwords }) => stopwords)
const stemOf = (module: Promise<{ stemmer: Stem }>) => module.then(({ stemmer }) => stemmer)

/** Removes the plural of Spanish words that are too short for the stemmer: `años`, `días`, `ojos`. */
function withShortPlurals(stem: Stem): Stem {
  return word => {
    const stemmed = stem(word)
    return stemmed === word && /^..[ao]s$/.test(word) ? word.slice(0, -1) : stemmed
  }
}

const norwegian: Language = {
  scripts: ['Latin'],
  loadStem: () => stemOf(import('@orama/stemmers/norwegian')),
  loadStopwords: () => stopwordsOf(import('@orama/stopwords/norwegian')),
}

/**
 * Languages with a stemmer. The published lists of stop words of some languages contain broken text, or words that
 * identify a topic. These languages have a list in this file, or none.
 */
const languages: Readonly<Record<string, Language>> = {
  ar: {
    scripts: ['Arabic'],
    loadStem: () => stemOf(import('@orama/stemmers/arabic')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/arabic')),
  },
  bg: {
    scripts: ['Cyrillic'],
    loadStem: () => stemOf(import('@orama/stemmers/bulgarian')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/bulgarian')),
  },
  da: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/danish')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/danish')),
  },
  de: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/german')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/german')),
  },
  el: {
    scripts: ['Greek'],
    loadStem: () => stemOf(import('@orama/stemmers/greek')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/greek')),
  },
  en: {
    scripts: ['Latin'],
    loadStem: async () => word => stemEnglish(foldAccents(word)),
    loadStopwords: async () => englishStopwords,
  },
  es: {
    scripts: ['Latin'],
    loadStem: async () => withShortPlurals(await stemOf(import('@orama/stemmers/spanish'))),
    loadStopwords: async () => split(spanishStopwords),
  },
  fi: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/finnish')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/finnish')),
  },
  fr: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/french')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/french')),
  },
  ga: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/irish')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/irish')),
  },
  hi: {
    scripts: ['Devanagari'],
    loadStem: () => stemOf(import('@orama/stemmers/indian')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/indian')),
  },
  hu: { scripts: ['Latin'], loadStem: () => stemOf(import('@orama/stemmers/hungarian')) },
  hy: {
    scripts: ['Armenian'],
    loadStem: () => stemOf(import('@orama/stemmers/armenian')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/armenian')),
  },
  id: { scripts: ['Latin'], loadStem: () => stemOf(import('@orama/stemmers/indonesian')) },
  it: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/italian')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/italian')),
  },
  lt: { scripts: ['Latin'], loadStem: () => stemOf(import('@orama/stemmers/lithuanian')) },
  nb: norwegian,
  ne: {
    scripts: ['Devanagari'],
    loadStem: () => stemOf(import('@orama/stemmers/nepali')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/nepali')),
  },
  nl: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/dutch')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/dutch')),
  },
  nn: norwegian,
  no: norwegian,
  pt: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/portuguese')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/portuguese')),
  },
  ro: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/romanian')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/romanian')),
  },
  ru: {
    scripts: ['Cyrillic'],
    loadStem: () => stemOf(import('@orama/stemmers/russian')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/russian')),
  },
  sr: { scripts: ['Latin', 'Cyrillic'], loadStem: () => stemOf(import('@orama/stemmers/serbian')) },
  sv: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/swedish')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/swedish')),
  },
  ta: {
    scripts: ['Tamil'],
    loadStem: () => stemOf(import('@orama/stemmers/tamil')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/tamil')),
  },
  tr: {
    scripts: ['Latin'],
    loadStem: () => stemOf(import('@orama/stemmers/turkish')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/turkish')),
  },
  uk: {
    scripts: ['Cyrillic'],
    loadStem: () => stemOf(import('@orama/stemmers/ukrainian')),
    loadStopwords: () => stopwordsOf(import('@orama/stopwords/ukrainian')),
  },
}

/** Scripts of languages without a stemmer. Words in these scripts are not stemmed as another language. */
const unstemmedScripts: Readonly<Record<string, StemmedScript>> = {
  be: 'Cyrillic',
  fa: 'Arabic',
  kk: 'Cyrillic',
  ky: 'Cyrillic',
  mk: 'Cyrillic',
  mn: 'Cyrillic',
  mr: 'Devanagari',
  ps: 'Arabic',
  sa: 'Devanagari',
  tg: 'Cyrillic',
  ug: 'Arabic',
  ur: 'Arabic',
}

/** Languages that use none of the stemmed scripts. Latin words in their texts are analyzed as English. */
const languagesOfOtherScripts = /^(?:ja|zh|yue|ko|th|km|lo|my|he|yi|bn|gu|kn|ml|pa|te|si|ka|am|dz|bo)$/

const defaults: Readonly<Record<StemmedScript, string>> = {
  Latin: 'en',
  Cyrillic: 'ru',
  Greek: 'el',
  Arabic: 'ar',
  Devanagari: 'hi',
  Tamil: 'ta',
  Armenian: 'hy',
}

/** Codes of the languages with a stemmer. */
export const stemmedLanguages: readonly string[] = Object.keys(languages)

/**
 * Returns the language code of a setting: `auto` if the setting is null, or does not start with a code of 2 or 3 letters.
 *
 * @param setting  BCP-47 tag, such as `de` or `pt-BR`
 */
export function languageCode(setting: string | null): string {
  if (setting === null || !/^[a-z]{2,3}(?:-|$)/i.test(setting)) return 'auto'
  try {
    return new Intl.Locale(setting).language
  } catch {
    return 'auto'
  }
}

/**
 * Loads a language: `auto`, or a BCP-47 tag, whose region and script are ignored. Words in scripts that the
 * language does not use are analyzed as the most common language of their script, for example Cyrillic as
 * Russian. With `auto`, Latin words are English. A language without a stemmer leaves its words as they are.
 *
 * @throws RangeError  the tag is not well-formed
 */
export async function loadLanguage(tag: string): Promise<LoadedLanguage> {
  const code = tag === 'auto' ? tag : new Intl.Locale(tag).language
  const own = languages[code] ?? { scripts: scriptsWithoutStemmer(code) }
  const chosen = new Map<Language, StemmedScript[]>()
  for (const [script, defaultCode] of Object.entries(defaults) as [StemmedScript, string][]) {
    const language = own.scripts.includes(script) ? own : languages[defaultCode]!
    chosen.set(language, [...(chosen.get(language) ?? []), script])
  }
  const stems = new Map<StemmedScript, Stem>()
  const stopwords = new Set(
    [chineseStopwords, thaiStopwords]
      .flatMap(split)
      .concat((await import('@orama/stopwords/japanese')).stopwords),
  )
  await Promise.all(
    [...chosen].map(async ([{ loadStem, loadStopwords }, scripts]) => {
      const [stem, words] = await Promise.all([loadStem?.(), loadStopwords?.()])
      for (const word of words ?? []) stopwords.add(word.normalize('NFC'))
      if (stem) for (const script of scripts) stems.set(script, stem)
    }),
  )
  return { code, stems, stopwords }
}

function scriptsWithoutStemmer(code: string): StemmedScript[] {
  if (code === 'auto' || languagesOfOtherScripts.test(code)) return []
  return [unstemmedScripts[code] ?? 'Latin']
}
