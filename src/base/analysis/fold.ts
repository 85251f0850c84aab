/** Maximum number of combining marks of a letter. Further marks are dropped. */
const marksMax = 8

const excessMarks = new RegExp(String.raw`(\p{M}{${marksMax}})\p{M}+`, 'gu')
const invisible = /\u00ad|\u200c|\u200d|\u2060|\ufeff/gu
/** Scripts whose marks are accents or optional vowels. In other scripts, marks are letters. */
const optionalMarks = /([\p{sc=Latin}\p{sc=Greek}\p{sc=Arabic}\p{sc=Hebrew}])\p{Mn}+/gu
/** Stress marks of other scripts, for example of Russian textbooks. */
const stressMarks = /[\u0300\u0301]/g
const unaccented: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ı: 'i',
  ς: 'σ',
  ё: 'е',
  ـ: '',
}
const special = new RegExp(`[${Object.keys(unaccented).join('')}]`, 'gu')
/**
 * Text other than Thai and Lao. In these scripts, the compatibility form splits some vowels, and the dictionary does not
 * contain words with split vowels.
 */
const notThaiOrLao = /[^\u0e00-\u0eff]+/gu

/** Returns true if a text has ASCII characters only. */
export function isAscii(text: string): boolean {
  return /^[\0-\x7f]*$/.test(text)
}

/**
 * Returns a text in compatibility form (NFKC), without invisible characters and with at most 8 marks on a
 * letter. Takes linear time, also for long runs of marks.
 */
export function normalizeText(text: string): string {
  if (isAscii(text)) return text
  return text
    .replace(excessMarks, '$1')
    .replace(invisible, '')
    .replace(notThaiOrLao, part => part.normalize('NFKC'))
    .normalize('NFC')
}

/**
 * Returns a normalized word in lowercase. In Turkish and Azerbaijani, `I` becomes `ı`, and `İ` becomes `i`.
 */
export function lowercase(word: string, language: string): string {
  if (language === 'tr' || language === 'az') return word.toLocaleLowerCase(language).normalize('NFC')
  const lower = word.toLowerCase()
  return isAscii(lower) ? lower : lower.replaceAll('i\u0307', 'i').normalize('NFC')
}

/**
 * Returns a lowercase word without accents: `é` is `e`, `ł` is `l`, `ß` is `ss`, `ё` is `е`. Keeps marks that
 * distinguish letters, as in Cyrillic `й` and in the scripts of India.
 */
export function foldAccents(word: string): string {
  if (isAscii(word)) return word
  return word
    .normalize('NFD')
    .replace(optionalMarks, '$1')
    .normalize('NFC')
    .replace(stressMarks, '')
    .replace(special, letter => unaccented[letter]!)
}

/**
 * Returns a lowercase German word with one spelling for umlauts: `ä` and `ae` become `a`, and `ß` becomes `ss`.
 * Keeps `ue` after a vowel or `q`, as in `neue` and `Quelle`.
 *
 * @see Lucene, GermanNormalizationFilter
 */
export function foldGerman(word: string): string {
  return foldAccents(word.replaceAll('ä', 'a').replaceAll('ö', 'o').replaceAll('ü', 'u'))
    .replace(/(?<![aeiouyq])ue/g, 'u')
    .replace(/([ao])e/g, '$1')
}
