import { describe, expect, test } from 'vitest'
import { openAnalyzer } from '../../../src/base/analysis/analyzer.ts'
import { rankByBm25, rankedText } from '../../harness/ranking.ts'

interface SearchSet {
  readonly sentences: readonly string[]
  /** Each question with the index of the sentence that answers it. */
  readonly questions: readonly (readonly [question: string, sentence: number])[]
}

const sets: Readonly<Record<string, SearchSet>> = {
  en: {
    sentences: [
      'The library closes at eight on weekdays.',
      'Refunds are paid within fourteen days.',
      'Dogs must be kept on a leash in the park.',
      'The server restarts after each update.',
      'Invoices are sent by e-mail every month.',
      'Children swim free on Sundays.',
      'The bakery sells bread made without gluten.',
      'Trains to the airport leave every ten minutes.',
      'Passwords expire after ninety days.',
      'The museum shows paintings of the last century.',
    ],
    questions: [
      ['When do libraries close?', 0],
      ['How long does a refund take?', 1],
      ['Do I get my invoice by email?', 4],
      ['Which train goes to the airport?', 7],
      ['When does my password expire?', 8],
    ],
  },
  de: {
    sentences: [
      'Die Bücherei schließt um acht Uhr.',
      'Rückzahlungen erfolgen innerhalb von vierzehn Tagen.',
      'Hunde sind im Park an der Leine zu führen.',
      'Der Server startet nach jeder Aktualisierung neu.',
      'Rechnungen werden monatlich per E-Mail verschickt.',
      'Kinder schwimmen sonntags kostenlos.',
      'Die Bäckerei in der Hauptstraße verkauft Brot.',
      'Züge zum Flughafen fahren alle zehn Minuten.',
      'Passwörter laufen nach neunzig Tagen ab.',
      'Herr Müller leitet das Museum für Gemälde.',
    ],
    questions: [
      ['Wo ist die Baeckerei in der Hauptstrasse?', 6],
      ['Wann kommt meine Rechnung?', 4],
      ['Wer ist Herr Mueller?', 9],
      ['Muss mein Hund an die Leine?', 2],
      ['Welcher Zug fährt zum FLUGHAFEN?', 7],
    ],
  },
  fr: {
    sentences: [
      'La bibliothèque ferme à huit heures.',
      'Les remboursements sont effectués sous quatorze jours.',
      'Les chiens doivent être tenus en laisse dans le parc.',
      'Le serveur redémarre après chaque mise à jour.',
      'Les factures sont envoyées par courriel chaque mois.',
      'Les enfants nagent gratuitement le dimanche.',
      'La boulangerie vend du pain sans gluten.',
      "Les trains pour l'aéroport partent toutes les dix minutes.",
      'Les mots de passe expirent après quatre-vingt-dix jours.',
      'Les élèves visitent le musée et ses chevaux de bois.',
    ],
    questions: [
      ['À quelle heure ferment les bibliotheques ?', 0],
      ['Quand reçoit-on la facture ?', 4],
      ["Quel train va à l'aeroport ?", 7],
      ['Un élève devant un cheval', 9],
      ['Mon chien doit-il être en laisse ?', 2],
    ],
  },
  es: {
    sentences: [
      'La biblioteca cierra a las ocho.',
      'Los reembolsos se pagan en catorce días.',
      'Los perros deben ir con correa en el parque.',
      'El servidor se reinicia después de cada actualización.',
      'Las facturas se envían por correo cada mes.',
      'Los niños nadan gratis los domingos.',
      'La panadería vende pan sin gluten.',
      'Los trenes al aeropuerto salen cada diez minutos.',
      'Las contraseñas caducan a los noventa días.',
      'El museo muestra canciones y pinturas del siglo pasado.',
    ],
    questions: [
      ['¿A qué hora cierran las bibliotecas?', 0],
      ['¿Cuándo llega mi factura?', 4],
      ['¿Dónde hay una panaderia?', 6],
      ['¿Cuándo caduca la contraseña?', 8],
      ['una canción y una pintura', 9],
    ],
  },
  tr: {
    sentences: [
      'Kütüphane saat sekizde kapanıyor.',
      'İadeler on dört gün içinde ödenir.',
      'Köpekler parkta tasmalı olmalıdır.',
      'Sunucu her güncellemeden sonra yeniden başlar.',
      'Faturalar her ay e-posta ile gönderilir.',
      'Çocuklar pazar günleri ücretsiz yüzer.',
      'Fırın glutensiz ekmek satar.',
      'Havaalanına trenler on dakikada bir kalkar.',
      'Şifreler doksan günde sona erer.',
      'Işık müzesi İstanbul’da kitaplarımızı sergiliyor.',
    ],
    questions: [
      ['Kütüphaneler ne zaman kapanır?', 0],
      ['FATURA ne zaman gelir?', 4],
      ['tren havaalanı', 7],
      ['sifre', 8],
      ['IŞIK ve kitap', 9],
    ],
  },
  ru: {
    sentences: [
      'Библиотека закрывается в восемь часов.',
      'Возврат денег занимает четырнадцать дней.',
      'Собак в парке нужно держать на поводке.',
      'Сервер перезагружается после каждого обновления.',
      'Счета отправляются по почте каждый месяц.',
      'Дети плавают бесплатно по воскресеньям.',
      'Пекарня продаёт хлеб без глютена.',
      'Поезда в аэропорт отправляются каждые десять минут.',
      'Пароли истекают через девяносто дней.',
      'В музее стоит новогодняя ёлка и лежат старые книги.',
    ],
    questions: [
      ['Когда закрываются библиотеки?', 0],
      ['Как ехать на поезде в аэропорту?', 7],
      ['Когда истекает пароль?', 8],
      ['Где посмотреть елку и книгу?', 9],
      ['Собака на поводке', 2],
    ],
  },
  zh: {
    sentences: [
      '图书馆晚上八点关门。',
      '退款将在十四天内支付。',
      '在公园里必须给狗拴上绳子。',
      '服务器在每次更新后重新启动。',
      '发票每月通过电子邮件发送。',
      '儿童星期日可以免费游泳。',
      '面包店出售无麸质面包。',
      '去机场的火车每十分钟一班。',
      '密码九十天后过期。',
      '博物馆展出上个世纪的绘画。',
    ],
    questions: [
      ['图书馆几点关门?', 0],
      ['我的发票什么时候发送?', 4],
      ['怎么坐火车去机场?', 7],
      ['密码', 8],
      ['狗可以进公园吗?', 2],
    ],
  },
  ja: {
    sentences: [
      '図書館は八時に閉まります。',
      '返金は十四日以内に支払われます。',
      '公園では犬にリードをつけてください。',
      'サーバーは更新のたびに再起動します。',
      '請求書は毎月メールで送られます。',
      '子供は日曜日に無料で泳げます。',
      'パン屋ではグルテンなしのパンを売っています。',
      '空港行きの電車は十分ごとに出ます。',
      'パスワードは九十日で期限が切れます。',
      '東京都の美術館では前世紀の絵画を展示しています。',
    ],
    questions: [
      ['図書館は何時に閉まりますか', 0],
      ['サーバの再起動', 3],
      ['請求書はいつ送られますか', 4],
      ['ﾊﾟｽﾜｰﾄﾞの期限', 8],
      ['東京の美術館', 9],
    ],
  },
  th: {
    sentences: [
      'ห้องสมุดปิดเวลาแปดโมง',
      'การคืนเงินใช้เวลาสิบสี่วัน',
      'สุนัขต้องใส่สายจูงในสวนสาธารณะ',
      'เซิร์ฟเวอร์จะเริ่มใหม่หลังการอัปเดต',
      'ใบแจ้งหนี้จะส่งทางอีเมลทุกเดือน',
      'เด็กว่ายน้ำฟรีทุกวันอาทิตย์',
      'ร้านเบเกอรี่ขายขนมปัง',
      'รถไฟไปสนามบินออกทุกสิบนาที',
      'รหัสผ่านหมดอายุหลังเก้าสิบวัน',
      'พิพิธภัณฑ์แสดงภาพวาดของศตวรรษที่แล้ว',
    ],
    questions: [
      ['ห้องสมุดปิดเมื่อไหร่', 0],
      ['รถไฟไปสนามบิน', 7],
      ['รหัสผ่านหมดอายุเมื่อไร', 8],
      ['ขายขนมปังที่ไหน', 6],
      ['ภาพวาดในพิพิธภัณฑ์', 9],
    ],
  },
}

describe.each(Object.entries(sets))('%s', (language, { sentences, questions }) => {
  test.each(questions)('%s', async (question, sentence) => {
    const analyzer = await openAnalyzer({ language })
    const texts = sentences.map((text, at) => rankedText(analyzer, String(at), text))
    const terms = analyzer.parseQuery(question).terms.map(({ term }) => term)
    expect(rankByBm25(texts, terms)[0]).toBe(String(sentence))
  })
})
