import { ownerPayloadKey } from '../../contract/fields.ts'
import type { Filter, FilterValue } from '../../storage/filter.ts'
import type { Visibility } from '../../storage/visibility.ts'
import { isColumnName } from './parse.ts'

/** Maximum length of a condition that has a tag, in UTF-16 units. The store counts code points, which are not more. */
const conditionCharsMax = 200
/** Tag of documents with more metadata entries than have tags. */
const moreEntries = '*'

/**
 * Returns tags of which each document of a knowledge base that a caller may see has at least one. Documents with such a tag can
 * be hidden, so check them, too. The result is undefined if a policy does not imply a tag, for example because all its
 * conditions are negated, or if the caller may see all documents.
 *
 * The store gives each document a tag for each name in `visibleTo`, for its owner, and for metadata entries.
 */
export function documentTags(knowledgeBaseId: string, { filter }: Visibility): readonly string[] | undefined {
  const conditions = filter && impliedConditions(filter)
  return conditions && [...new Set(conditions)].map(condition => `${knowledgeBaseId}/${condition}`)
}

/** Returns conditions with tags of which at least one holds if a filter matches; undefined if there may be none. */
function impliedConditions(filter: Filter): readonly string[] | undefined {
  switch (filter.kind) {
    case 'or':
      return allOrNone(filter.parts.map(impliedConditions))?.flat()
    case 'and':
      return filter.parts
        .map(impliedConditions)
        .filter(conditions => conditions !== undefined)
        .sort((a, b) => a.length - b.length)[0]
    case 'in':
      return allOrNone(filter.values.map(value => conditionsOf(filter.key, value)))?.flat()
    case 'all':
      return filter.values.map(value => conditionsOf(filter.key, value)).find(conditions => conditions)
    default:
      return undefined
  }
}

function allOrNone<T>(values: readonly (T | undefined)[]): readonly T[] | undefined {
  return values.every(value => value !== undefined) ? values : undefined
}

/** Returns the conditions whose tags a document with a value can have; undefined if it may have none. */
function conditionsOf(key: string, value: FilterValue): readonly string[] | undefined {
  const condition = `${key}=${value}`
  const isExact = typeof value === 'number' ? Number.isSafeInteger(value) : isStoredUnchanged(condition)
  if (!isExact || condition.length > conditionCharsMax) return undefined
  if (key === 'visible_to' || key === ownerPayloadKey) return [condition]
  return isColumnName(key) && !documentIdKeys.has(key) ? [condition, moreEntries] : undefined
}

/** Columns that are not metadata, and have no tags. */
const documentIdKeys: ReadonlySet<string> = new Set(['documentId', 'knowledgeBaseId'])

/** Returns false for a text that SQL functions can cut or change. */
function isStoredUnchanged(text: string): boolean {
  return !/[\0\p{Surrogate}]/u.test(text)
}
