/** Reason why a page, a repository or an archive cannot be read. The message continues the sentence "URL: …". */
export class SourceProblem extends Error {
  override readonly name = 'SourceProblem'

  constructor(
    readonly code:
      | 'address_refused'
      | 'extraction_failed'
      | 'fetch_failed'
      | 'payload_too_large'
      | 'robots_disallowed'
      | 'unsupported_file_type',
    message: string,
  ) {
    super(message)
  }
}
