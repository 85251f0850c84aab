/**
 * Writes docs/errors.md from the registry of error codes.
 *
 *   npx tsx scripts/write-errors-doc.ts
 */
import { writeFileSync } from 'node:fs'
import { errorCodes, errorRegistry } from '../src/contract/errors.ts'

const intro = `# Error codes

This page helps you handle errors: it lists every error code with its HTTP status and what to do next. To read about a code in
the terminal, use \`wb explain CODE\`. \`GET /error-codes\` returns the list as JSON.

All errors have the same format:

\`\`\`json
{
  "error": {
    "code": "workspace_not_found",
    "message": "workspace '3f0c…' not found",
    "requestId": "01JC3Z0V9T8Q6M5K4H2G1F0E9D",
    "hint": "List the workspaces that you can access and use one of their IDs.",
    "docs": "docs/errors.md#workspace-not-found"
  }
}
\`\`\`

| field | content |
| --- | --- |
| \`code\` | the stable code; use it in programs, because its name and status never change |
| \`message\` | what happened, for people; it can change in any release |
| \`requestId\` | the ID of the request, also in the response headers and in the log of the runtime |
| \`hint\` | what to do next |
| \`docs\` | the section of this page |

\`npx tsx scripts/write-errors-doc.ts\` writes this page.
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
