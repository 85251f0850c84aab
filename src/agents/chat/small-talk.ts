import { words } from '../../base/words.ts'

/** Greetings, thanks, praise, acknowledgments, refusals and farewells, grouped by language or by related languages. */
const phrases = [
  `hi|hello|hey|hey there|hi there|hello there|good morning|good afternoon|good evening|good night|good day|howdy|greetings
   |how are you|how are you doing|how is it going|how s it going|what s up|nice to meet you|thanks|thank you|thx|ty|cheers
   |thanks a lot|thank you so much|thank you very much|many thanks|much appreciated|appreciate it|thanks for your help
   |thanks for the help|thank you for your help|ok|okay|k|kk|alright|all right|right|great|good|nice|cool|perfect|awesome
   |excellent|wonderful|fantastic|lovely|super|brilliant|got it|i see|understood|makes sense|that makes sense
   |that s great|that s all|that is all|that s helpful|that helps|very helpful|helpful|no problem|no worries|never mind
   |nevermind|you re welcome|well done|good job|bye|bye bye|goodbye|see you|see you later|later|take care
   |have a nice day|have a good day|haha|hahaha|lol|wow|oh|ah|hm|hmm|well|so much|again|no|nope|no thanks
   |no thank you|then|for now|for your help|for the help
   |thanks for that|thanks for explaining|thanks for the explanation|sounds good|good to know|fair enough|great job
   |that works|that s it|that s perfect|that s right|that s correct|that s fine|that s good|this is great|this is helpful
   |i understand|good question|who are you|hello everyone|hi everyone`,
  `hallo|hallo zusammen|guten tag|guten morgen|guten abend|gute nacht|moin|servus|gruss gott|danke|danke schon|vielen dank
   |besten dank|herzlichen dank|danke dir|danke sehr|alles klar|klar|gut|sehr gut|prima|toll|verstanden|passt|genau|tschuss
   |auf wiedersehen|bis bald|bis spater|ciao|wie geht s|wie geht es dir|nein|nein danke`,
  `bonjour|bonsoir|salut|coucou|bonne nuit|bonne journee|merci|merci beaucoup|merci bien|d accord|tres bien|parfait|super
   |genial|compris|au revoir|a bientot|ca va|comment ca va|comment allez vous|non merci|non`,
  `hola|buenos dias|buenas tardes|buenas noches|buenas|gracias|muchas gracias|mil gracias|vale|de acuerdo|muy bien|perfecto
   |genial|entendido|adios|hasta luego|hasta pronto|que tal|como estas|no gracias`,
  `ola|bom dia|boa tarde|boa noite|oi|obrigado|obrigada|muito obrigado|muito obrigada|valeu|beleza|otimo|perfeito|tchau
   |ate logo|tudo bem`,
  `ciao|buongiorno|buonasera|buonanotte|salve|grazie|grazie mille|molte grazie|va bene|perfetto|ottimo|capito
   |arrivederci|come stai|no grazie`,
  `hoi|hallo|goedemorgen|goedemiddag|goedenavond|dag|dank je|dank je wel|dank u|dank u wel|bedankt|prima|oke|tot ziens|doei`,
  `hej|hej hej|god morgon|god kvall|tack|tack sa mycket|tusen tack|takk|tak|mange tak|hei|moi|kiitos|bra|hej da|ha det`,
  `czesc|dzien dobry|dobry wieczor|dzieki|dziekuje|dziekuje bardzo|ahoj|dobry den|dekuji|diky|szia|koszonom`,
  `merhaba|selam|gunaydin|iyi aksamlar|tesekkurler|tesekkur ederim|sag ol|tamam|gorusuruz|hosca kal`,
  `привет|здравствуйте|доброе утро|добрыи день|добрыи вечер|спасибо|большое спасибо|хорошо|ладно|понятно|ок|пока
   |до свидания|привіт|дякую|добрий день`,
  `γεια|γεια σου|καλημερα|καλησπερα|ευχαριστω|שלום|תודה|תודה רבה|مرحبا|السلام عليكم|شكرا|شكرا جزيلا|سلام`,
  `你好|您好|早上好|谢谢|谢谢你|谢谢您|非常感谢|好的|再见|多谢|こんにちは|こんばんは|おはよう|おはようございます|ありがとう
   |ありがとうございます|了解|了解です|さようなら|안녕하세요|안녕|감사합니다|고마워요|고맙습니다|नमस्ते|धन्यवाद|xin chao|cam on|สวัสดี|ขอบคุณ`,
].flatMap(line => line.split('|'))

/** Affirmative replies to a question such as "Shall I go on?". */
const affirmations =
  `yes|yes please|yeah|yep|yup|sure|sure thing|of course|please|please do|go on|go ahead|continue|please continue
   |more|tell me more|more please|more details|more details please|explain further|please explain|elaborate
   |please elaborate|can you elaborate|could you elaborate|go into detail|do it|exactly|correct|ja|ja bitte|gerne|bitte|weiter|oui|oui s il vous plait|si|si por favor|sim|da|tak
   |jo|evet|да|是|是的|はい|네`.split('|')

const knownPhrases = {
  smallTalk: normalizedPhraseSet([...phrases, ...affirmations]),
  affirmation: normalizedPhraseSet(affirmations),
}
const phraseWordsMax = 6

function normalizedPhraseSet(list: readonly string[]): ReadonlySet<string> {
  return new Set(list.map(phrase => words(phrase).join(' ')))
}

/**
 * Returns true if a message consists only of greetings, thanks, affirmations and similar phrases, or contains no words.
 * Call {@link isAffirmation} first to tell affirmations apart.
 */
export function isSmallTalk(message: string): boolean {
  return consistsOf(knownPhrases.smallTalk, words(message))
}

/** Returns true if a message only agrees, for example to an offer of more details. */
export function isAffirmation(message: string): boolean {
  const messageWords = words(message)
  return messageWords.length > 0 && consistsOf(knownPhrases.affirmation, messageWords)
}

/**
 * Returns true if the words split into phrases of the set when the longest phrase is taken at each position, without
 * backtracking.
 */
function consistsOf(phrases: ReadonlySet<string>, messageWords: readonly string[]): boolean {
  for (let at = 0; at < messageWords.length; ) {
    const length = phraseLengthAt(phrases, messageWords, at)
    if (length === 0) return false
    at += length
  }
  return true
}

function phraseLengthAt(phrases: ReadonlySet<string>, messageWords: readonly string[], at: number): number {
  for (let length = Math.min(phraseWordsMax, messageWords.length - at); length > 0; length--)
    if (phrases.has(messageWords.slice(at, at + length).join(' '))) return length
  return 0
}
