/** JSON text that `JSON.stringify` cannot write. */
class Verbatim {
  constructor(readonly json: string) {}

  toJSON(): string {
    return `@verbatim:${this.json}@`
  }
}

/** Serializes a value, with verbatim JSON inserted unchanged. */
export function serialize(value: unknown): string {
  return JSON.stringify(value).replace(/"@verbatim:(.*?)@"/g, (_, json: string) => json)
}

/** Invalid values of a field, and the codes that reject them. */
export interface InvalidValues {
  readonly wrong: readonly unknown[]
  readonly codes: readonly string[]
}

const infinite = [new Verbatim('1e400'), new Verbatim('-1e400')]
const broken = ['a\u0000b', '\u0000', 'high \ud800', '\udc00 low']
const notText = [5, true, [], {}]
const notNumber = ['5', true, [], {}, ...infinite]
const notWhole = [...notNumber, 1.5, 1e300, new Verbatim('9007199254740993'), -1]

export const id = invalidValues([
  ...notText,
  null,
  '',
  'nope',
  '11111111-2222-3333-4444-555555555555',
  ...broken,
])
export const boosts = invalidValues([
  null,
  'x',
  {},
  [5],
  [null],
  [{}],
  [{ factor: 2 }],
  [{ filter: { lang: 'en' } }],
  [{ filter: { lang: 'en' }, recency: { halfLifeDays: 30 }, factor: 2 }],
  ...[0, -1, 11, '2', null, ...infinite].map(factor => [{ filter: { lang: 'en' }, factor }]),
  ...[5, [], 'x', { $near: 1 }, { lang: { $gt: {} } }].map(condition => [{ filter: condition, factor: 2 }]),
  ...[0, -1, 36_501, '30', null, ...infinite].map(halfLifeDays => [{ recency: { halfLifeDays }, factor: 2 }]),
  ...[5, '', null, {}, 'x'.repeat(1_001)].map(field => [{ recency: { halfLifeDays: 30, field }, factor: 2 }]),
  Array(11).fill({ filter: { lang: 'en' }, factor: 2 }),
])
export const ids = invalidValues([
  'x',
  5,
  null,
  {},
  [],
  [5],
  ['nope'],
  Array(51).fill('9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'),
])
export const idOrNull = invalidValues([
  ...notText,
  '',
  'nope',
  '11111111-2222-3333-4444-555555555555',
  ...broken,
])
export const text = invalidValues([...notText, null, '', ...broken])
export const textOrNull = invalidValues([...notText, ...broken])
export const name = invalidValues([...text.wrong, 'x'.repeat(1_001)])
export const description = invalidValues([...textOrNull.wrong, 'x'.repeat(10_001)])
export const folderPath = invalidValues([...notText, null, 'x'.repeat(1_001), ...broken])
export const folderDescription = invalidValues([...notText, '', ' \n ', 'x'.repeat(501), ...broken])
export const choice = invalidValues([...notText, null, '', 'nope', ...broken])
export const flag = invalidValues(['true', '', 1, 0, null, [], {}])
export const flagOrNull = invalidValues(['true', '', 1, 0, [], {}])
export const countOrNull = invalidValues(notWhole)
export const positiveOrNull = invalidValues([...notWhole, 0])
export const positive = invalidValues([...notWhole, 0, null])
export const timestamp = invalidValues([
  ...notText,
  '',
  'today',
  '2026-02-30T00:00:00.000Z',
  '2026-01-01T00:00:00+02:00',
  ...broken,
])
export const numberOrNull = invalidValues(notNumber)
export const fraction = invalidValues([...notNumber, null, -0.1, 1.1])
export const label = invalidValues([...notText, null, '', 'x'.repeat(121), ...broken])
export const scopes = invalidValues([
  'read',
  5,
  true,
  null,
  {},
  [],
  [5],
  [null],
  [['read']],
  [''],
  ['nope'],
  ['READ'],
  ['read '],
  ['write:'],
  ['writeX'],
  ['read', 'a\u0000'],
  ['\ud800'],
])
export const principal = invalidValues([...notText, '', 'a b', 'a/b', 'x'.repeat(129), ...broken])
export const future = invalidValues([
  ...timestamp.wrong.filter(value => value !== null),
  '2020-01-01T00:00:00.000Z',
  '-000001-01-01T00:00:00.000Z',
])
export const grace = invalidValues([...notWhole, null, 2_592_001])
export const listOfText = invalidValues([
  'x',
  5,
  true,
  null,
  {},
  [1],
  [null],
  [['x']],
  broken.slice(0, 1),
  broken.slice(2, 3),
])
export const address = invalidValues([
  ...notText,
  '',
  'no address',
  'ftp://files.example.com',
  'http://user:secret@host.example.com',
  'http://169.254.169.254/',
  ...broken,
])
export const path = invalidValues([
  ...notText,
  '',
  'relative',
  '/../up',
  '/a\u0000',
  '/\ud800',
  '/line\nbreak',
])
export const secretRef = invalidValues([
  ...notText,
  '',
  'sk-plain',
  'vault:x',
  'file:relative',
  'env:',
  'env:A\u0000',
])
export const lexical = invalidValues([
  'on',
  5,
  true,
  null,
  [],
  {},
  { enabled: 'yes', analyzer: null, options: {} },
  { enabled: true, analyzer: 5, options: {} },
  { enabled: true, analyzer: null, options: { a: 1 } },
  { enabled: true, analyzer: null, options: null },
  { enabled: true, analyzer: '\u0000', options: {} },
])
export const credentials = invalidValues([
  'x',
  5,
  null,
  [],
  { token: 5 },
  { token: null },
  { token: 'sk-plain' },
  { token: 'env:A\u0000' },
  { 'key\u0000': 'env:A' },
])
export const attributes = invalidValues([
  'x',
  5,
  true,
  null,
  [],
  { team: 5 },
  { team: null },
  { team: {} },
  { team: '\u0000' },
  { 'key\u0000': 'x' },
  { team: 'x'.repeat(1_025) },
  Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, 'x'])),
])
export const command = invalidValues(['x', 5, true, null, []])
export const metadata = invalidValues(
  [
    'x',
    5,
    true,
    null,
    [],
    { a: {} },
    { a: [] },
    { a: new Verbatim('1e400') },
    { a: 'b\u0000' },
    { 'a\u0000': 'b' },
    { a: '\ud800' },
    { '\ud800': 'b' },
    { visible_to: '*' },
    { 'chunker.id': 'x' },
    { a: 'x'.repeat(65_536) },
  ],
  ['invalid_metadata', 'validation_error'],
)
export const managedValues = invalidValues([
  'x',
  5,
  null,
  [],
  { PATH: 'x' },
  { openai_api_key: 'x' },
  { OPENAI_API_KEY: null },
  { OPENAI_API_KEY: ['x'] },
  ...[...broken, 'a\nWB_X=1', 'a\r', '\u2028', 'x'.repeat(4_097)].map(text => ({ OPENAI_API_KEY: text })),
])
export const visibleTo = invalidValues(
  [
    '*',
    5,
    true,
    {},
    [],
    [1],
    [null],
    [''],
    [['*']],
    ['a\u0000'],
    ['\ud800'],
    ['x'.repeat(256)],
    Array.from({ length: 1_001 }, (_, index) => `p${index}`),
  ],
  ['invalid_visible_to', 'validation_error'],
)
export const chunker = invalidValues(
  [
    'recursive',
    5,
    null,
    [],
    { maxChars: 0 },
    { maxChars: '9' },
    { maxChars: 1e300 },
    { minChars: -1 },
    { overlapChars: 1.5 },
    { overlapChars: new Verbatim('1e400') },
  ],
  ['validation_error', 'invalid_chunker'],
)
export const vector = invalidValues([
  'x',
  5,
  true,
  null,
  {},
  [],
  ['1', 0, 0],
  [1, null, 0],
  [true, 0, 0],
  [[1], 0, 0],
  [new Verbatim('1e400'), 0, 0],
  [new Verbatim('-1e400'), 0, 0],
  [new Verbatim('1e39'), 0, 0],
  [1, 0],
  [1, 0, 0, 0],
  Array(16_385).fill(0),
])
export const topK = invalidValues([...notNumber, null, 0, -1, 1.5, 1_001, 1e300])
export const filter = invalidValues([
  'x',
  5,
  true,
  null,
  [],
  { a: {} },
  { a: [1] },
  { a: { b: 1 } },
  { a: { $near: 1 } },
  { $nor: [] },
  { $and: {} },
  { $or: [5] },
  { $not: [] },
  { a: { $in: 5 } },
  { a: { $eq: { b: 1 } } },
  { a: new Verbatim('1e400') },
  { a: 'b\u0000' },
  { 'a\u0000': 'b' },
  { a: '\ud800' },
  { a: { $in: Array(1_001).fill(0) } },
  nestedFilter(33),
])
export const savedFilter = invalidValues([...filter.wrong, { a: 'x'.repeat(32_761) }])
export const records = invalidValues([
  'x',
  5,
  null,
  {},
  [],
  [null],
  ['x'],
  [{}],
  [{ id: 'a' }],
  [{ id: '', vector: [1, 0, 0] }],
  [{ id: 'a\u0000', vector: [1, 0, 0] }],
  [{ id: '\ud800', vector: [1, 0, 0] }],
  [{ id: 'a', text: 'b', vector: [1, 0, 0] }],
  [{ id: 'a', text: 'b\u0000' }],
  [{ id: 'a', vector: [1, 0, 0], payload: 'x' }],
  [{ id: 'a', vector: [1, 0, 0], payload: { deep: { text: '\u0000' } } }],
  [{ id: 'a', vector: [1, 0, 0], payload: { deep: ['\ud800'] } }],
  [{ id: 'a', vector: [1, 0, 0], payload: { deep: new Verbatim('1e400') } }],
  Array.from({ length: 501 }, (_, index) => ({ id: `r${index}`, vector: [1, 0, 0] })),
])
export const completionMessages = invalidValues([
  'x',
  5,
  null,
  {},
  [],
  [null],
  ['x'],
  [{ content: 'a' }],
  [{ role: 'tool', content: 'a' }],
  [{ role: 'user', content: 5 }],
  [{ role: 'user', content: 'x'.repeat(131_073) }],
  [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] }],
  [{ role: 'user', content: [{ type: 'image_url' }] }],
  [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGVsbG8=' } }] }],
  [{ role: 'user', content: [{ type: 'text' }] }],
  [{ role: 'user', content: [{ type: 'text', text: 5 }] }],
  ...broken.map(content => [{ role: 'user', content }]),
  Array(1_001).fill({ role: 'user', content: 'a' }),
])
const pngBase64 = 'iVBORw0KGgo='
export const images = invalidValues([
  'x',
  5,
  null,
  {},
  [5],
  [null],
  [{}],
  [{ mediaType: 'image/png' }],
  [{ mediaType: 'image/svg+xml', data: pngBase64 }],
  [{ mediaType: 'image/gif', data: pngBase64 }],
  [{ mediaType: 'image/png', data: '' }],
  [{ mediaType: 'image/png', data: `${pngBase64}=` }],
  [{ mediaType: 'image/png', data: 5 }],
  ...broken.map(data => [{ mediaType: 'image/png', data }]),
  Array(5).fill({ mediaType: 'image/png', data: pngBase64 }),
])
export const idSet = invalidValues([
  'x',
  5,
  true,
  null,
  {},
  [5],
  [null],
  ['nope'],
  ['\u0000'],
  [[exampleId()]],
  Array(1_001).fill(exampleId()),
])
export const toolIds = invalidValues([
  'x',
  5,
  true,
  null,
  {},
  [5],
  [null],
  [''],
  ['x'.repeat(513)],
  ['a\u0000'],
  ['\ud800'],
  Array(1_001).fill('a'),
])
export const title = invalidValues([...notText, '', 'x'.repeat(2_001), ...broken])
const checkedFile = { sourceFilename: 'a.pdf', fileHash: 'a'.repeat(64) }
export const checkedFiles = invalidValues([
  'x',
  5,
  null,
  {},
  [],
  [5],
  [{}],
  [{ ...checkedFile, sourceFilename: '' }],
  [{ ...checkedFile, fileHash: 'A'.repeat(64) }],
  [{ ...checkedFile, fileHash: 'a' }],
  Array(1_001).fill(checkedFile),
])

export const documentIds = invalidValues([
  'x',
  5,
  null,
  {},
  [],
  [5],
  ['nope'],
  ['\u0000'],
  Array(101).fill(exampleId()),
])

export const toolRules = invalidValues([
  'x',
  5,
  null,
  [],
  { '': { permission: 'ask' } },
  { search_kb: 'ask' },
  { search_kb: {} },
  { search_kb: { permission: 'maybe' } },
  { search_kb: { permission: 'ask', afterReading: 'allow' } },
  { search_kb: { permission: 'ask', colour: 'red' } },
])
export const reviews = invalidValues(['x', 5, null, {}, [5], [{}], [{ name: 'x' }], [{ name: 'x', hash: 5 }]])

function invalidValues(
  wrong: readonly unknown[],
  codes: readonly string[] = ['validation_error'],
): InvalidValues {
  return { wrong, codes }
}

function nestedFilter(depth: number): object {
  return depth === 1 ? { a: 1 } : { $not: nestedFilter(depth - 1) }
}

function exampleId(): string {
  return '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'
}
