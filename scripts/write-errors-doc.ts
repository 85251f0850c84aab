/**
 * Writes docs/errors.md from the registry of error codes.
 *
 *   npx tsx scripts/write-errors-doc.ts
 */
import { writeFileSync } from 'node:fs'
import { errorCodes, errorRegistry } from '../src/contract/errors.ts'

const intro = `# Error codes

Every failure has one form, whatever failed:

\`\`\`json
{
  "error": {
    "code": "workspace_not_found",
    "message": "workspace '3f0c…' not found",
    "requestId": "01JC3Z0V9T8Q6M5K4H2G1F0E9D",
    "hint": "List the workspaces that you may see and use one of their ids.",
    "docs": "docs/errors.md#workspace-not-found"
  }
}
\`\`\`

Programs decide by \`code\`, which never changes its name or its status. \`requestId\` is also in the response headers
and in the log of the runtime. \`wb explain CODE\` and \`GET /error-codes\` say what is said here.

This page is written by \`npx tsx scripts/write-errors-doc.ts\`.
`

/** Returns the text of docs/errors.md. Headings are anchors, so codes have hyphens instead of underscores. */
export function errorsDoc(): string {
  const sections = errorCodes.map(code => {
    const { status, hint } = errorRegistry[code]
    return `## ${code.replaceAll('_', '-')}\n\n\`${code}\`, status ${status}. ${hint}\n`
  })
  return [intro, ...sections].join('\n')
}

if (import.meta.filename === process.argv[1])
  writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsDoc())
