import { describe, expect, test } from 'vitest'
import { openAnalyzer } from '../../../src/base/analysis/analyzer.ts'

/** Returns whether a text contains any term of a query. */
async function finds(language: string, query: string, text: string): Promise<boolean> {
  const analyzer = await openAnalyzer({ language })
  const { counts } = analyzer.countTerms(text)
  return analyzer.parseQuery(query).terms.some(({ term }) => counts.has(term))
}

describe.each<[language: string, found: [query: string, text: string][], missed: [string, string][]]>([
  [
    'en',
    [
      ['running', 'She runs every day'],
      ['library', 'two libraries'],
      ['naive', 'a naïve idea'],
      ['résumé', 'your resume'],
      ['wifi', 'Wi-Fi password'],
      ['e-mail', 'send an email'],
    ],
    [
      ['library', 'a liberal view'],
      ['the', 'nothing here'],
    ],
  ],
  [
    'de',
    [
      ['Haus', 'Die alten Häuser am Fluss'],
      ['Rechnung', 'alle Rechnungen des Jahres'],
      ['Strasse', 'in der Straße'],
      ['STRASSE', 'die Straßen der Stadt'],
      ['Mueller', 'Herr Müller'],
      ['Muller', 'Herr Müller'],
      ['Müller', 'Herr Mueller'],
      ['Größe', 'die groesse'],
      ['Kündigung', 'Kuendigungen sind schriftlich'],
      ['Email', 'eine E-Mail schreiben'],
      ['neu', 'neue Regeln'],
    ],
    [
      ['Haus', 'die Hose'],
      ['Katze', 'der Hund'],
    ],
  ],
  [
    'tr',
    [
      ['kitap', 'kitaplarımız rafta'],
      ['araba', 'arabalar durdu'],
      ['para', 'paranın değeri'],
      ['ev', 'evlerimizden geldik'],
      ['IŞIK', 'ışık söndü'],
      ['ısparta', 'ISPARTA gülleri'],
      ['istanbul', 'İstanbul’da yağmur'],
      ['İSTANBUL', 'istanbul'],
      ['diyarbakir', 'Diyarbakır surları'],
      ['ogrenci', 'öğrenci işleri'],
    ],
    [['kitap', 'kalem aldım']],
  ],
  [
    'fr',
    [
      ['cheval', 'les chevaux courent'],
      ['maison', 'de belles maisons'],
      ['eleve', 'les élèves'],
      ['élève', 'eleves'],
      ['arbre', "l'arbre"],
      ['œuvre', 'oeuvres complètes'],
      ['naturellement', 'naturel'],
    ],
    [['cheval', 'la maison']],
  ],
  [
    'es',
    [
      ['canción', 'las canciones de amor'],
      ['cancion', 'una canción'],
      ['casa', 'casas blancas'],
      ['año', 'los años'],
      ['día', 'buenos días'],
      ['trabajar', 'trabajando'],
    ],
    [['casa', 'el coche']],
  ],
  [
    'ru',
    [
      ['книга', 'с книгами в руках'],
      ['библиотека', 'в библиотеке тихо'],
      ['елка', 'новогодняя ёлка'],
      ['город', 'города́ и сёла'],
      ['МОСКВА', 'в Москве'],
      ['сервер', 'Server и серверы'],
    ],
    [['книга', 'стол у окна']],
  ],
  [
    'zh',
    [
      ['北京', '我想知道北京的天气'],
      ['天气', '北京天气怎么样'],
      ['猫', '她养了一只猫'],
      ['机器学习', '机器学习的方法'],
      ['ＧＰＵ', 'GPU加速'],
    ],
    [['上海', '我想知道北京的天气']],
  ],
  [
    'ja',
    [
      ['東京', '東京都に住んでいます'],
      ['猫', '猫を飼う'],
      ['サーバ', 'サーバーを再起動する'],
      ['ｻｰﾊﾞｰ', 'サーバーの設定'],
      ['検索', '全文検索エンジン'],
    ],
    [['大阪', '東京都に住んでいます']],
  ],
  [
    'th',
    [
      ['แมว', 'ฉันรักแมวที่บ้าน'],
      ['โรงเรียน', 'เด็กไปโรงเรียนทุกวัน'],
      ['น้ำ', 'ดื่มน้ำเย็น'],
    ],
    [['หมา', 'ฉันรักแมว']],
  ],
  ['km', [['ភាសា', 'ភាសាខ្មែរ']], [['ទឹក', 'ភាសា']]],
  ['lo', [['ພາສາ', 'ພາສາລາວ']], [['ນ້ຳ', 'ພາສາ']]],
  ['my', [['မြန်မာ', 'မြန်မာဘာသာ']], [['ရေ', 'ဘာသာ']]],
  ['ko', [['학교', '학교에서 공부한다']], [['병원', '학교에서']]],
  [
    'pl',
    [
      ['Łódź', 'lodz'],
      ['zażółć', 'ZAŻÓŁĆ'],
    ],
    [['running', 'runs']],
  ],
  ['el', [['άνθρωπος', 'οι ΑΝΘΡΩΠΟΙ']], [['βιβλίο', 'σπίτι']]],
  ['ar', [['كتاب', 'الكتاب الجديد']], [['كتاب', 'بيت']]],
  [
    'auto',
    [
      ['libraries', 'the library'],
      ['книга', 'книги'],
      ['muller', 'Müller'],
      ['İstanbul', 'istanbul'],
      ['東京', '東京都'],
    ],
    [['kitap', 'evler']],
  ],
])('%s', (language, found, missed) => {
  test.each(found)('%s finds %s', async (query, text) => {
    expect(await finds(language, query, text)).toBe(true)
  })
  test.each(missed)('%s does not find %s', async (query, text) => {
    expect(await finds(language, query, text)).toBe(false)
  })
})

test('a region is ignored, and words of another script are stemmed', async () => {
  const analyzer = await openAnalyzer({ language: 'de-AT' })
  expect(analyzer.language).toBe('de')
  expect(await finds('de-AT', 'книга', 'книги')).toBe(true)
})

test('rejects a tag that is not well-formed', async () => {
  await expect(openAnalyzer({ language: 'not a language' })).rejects.toThrow(RangeError)
})
