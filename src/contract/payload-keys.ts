// These keys are also used by commands, which do not load schemas.

/** Payload key with the section of a chunk: the headings above its new text, such as `Security > Revoke a key`. */
export const sectionPayloadKey = 'chunk.section'
/** Payload key with the column headers of the Markdown, CSV or TSV table in which a chunk starts, such as `Name | Role`. Absent if the chunk contains them. */
export const tableHeadsPayloadKey = 'chunk.tableHeads'
/** Payload keys with the place in the file of the new text of a chunk: the number of its page or slide, or the name of its sheet. */
export const placePayloadKeys = { page: 'chunk.page', slide: 'chunk.slide', sheet: 'chunk.sheet' } as const
/** Value of `recency.field` for the field of the document, instead of a metadata field. */
export const ingestedAtField = 'ingestedAt'
