// These keys are also used by commands, which do not load schemas.

/** Payload key with the section of a chunk: the headings at its start, such as `Security > Revoke a key`. */
export const sectionPayloadKey = 'chunk.section'
/** Value of `recency.field` for the field of the document, instead of a metadata field. */
export const ingestedAtField = 'ingestedAt'
