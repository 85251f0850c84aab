import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { readTextUpTo, readYaml } from '../base/read-yaml.ts'
import { Document as StoredDocument } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import { roles } from '../contract/scopes.ts'
import { formatKey } from './key-path.ts'

const policySizeMax = 65_536
const casesMax = 10_000

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])
const Principal = z.strictObject({
  role: z.enum(roles).default('viewer'),
  attributes: z.record(z.string(), z.string()).default({}),
})
const Document = z.strictObject({
  metadata: z.record(z.string(), scalar).default({}),
  visibleTo: z.array(z.string()).nullable().default(null),
  owner: z.string().nullable().default(null),
  file: z.string().nullable().default(null),
  status: StoredDocument.shape.status.default('ready'),
})
const Case = z
  .strictObject({
    name: z.string().optional(),
    principal: z.string(),
    document: z.union([z.string(), Document]).optional(),
    documentId: z.uuid().optional(),
    expect: z.enum(['allow', 'deny']),
  })
  .refine(({ document, documentId }) => (document === undefined) !== (documentId === undefined), {
    message: 'must have either document or documentId',
  })
const AccessCases = z
  .strictObject({
    policy: z.string().optional(),
    policyFile: z.string().optional(),
    principals: z.record(z.string(), Principal).default({}),
    documents: z.record(z.string(), Document).default({}),
    cases: z.array(Case).min(1).max(casesMax),
  })
  .refine(({ policy, policyFile }) => policy === undefined || policyFile === undefined, {
    message: 'can have either policy or policyFile',
  })

/** The fields of a document in a test case. */
export type AccessCaseDocument = z.output<typeof Document>

/** A test case of access. Its document is in the file, or in a knowledge base if it has a `documentId`. */
export interface AccessCase {
  readonly name: string
  readonly principal: string
  readonly expect: 'allow' | 'deny'
  readonly document: AccessCaseDocument | { readonly documentId: string }
}

/** Test cases of access, read from a file. */
export interface AccessCases {
  /** Text of the policy; null for the built-in policy, or for that of the knowledge base. */
  readonly policy: string | null
  readonly principals: Readonly<Record<string, z.output<typeof Principal>>>
  readonly cases: readonly AccessCase[]
}

/**
 * Reads test cases from a YAML file.
 *
 * @throws validation_error  the file is invalid; the message contains the file and the key
 * @see docs/access.md#test-a-policy
 */
export function readAccessCases(path: string): AccessCases {
  const parsed = AccessCases.safeParse(readYaml(path))
  if (!parsed.success) {
    const { path: key, message } = parsed.error.issues[0]!
    const place = key.length === 0 ? '' : ` ${formatKey(key.map(String))}:`
    throw invalidCases(`${path}:${place} ${message}`)
  }
  const { policy, policyFile, principals, documents, cases } = parsed.data
  return {
    policy:
      policy?.trim() ??
      (policyFile === undefined
        ? null
        : readTextUpTo(resolve(dirname(path), policyFile), policySizeMax).trim()),
    principals,
    cases: cases.map(({ name, principal, document, documentId, expect }, index): AccessCase => {
      const title = typeof document === 'string' ? document : (documentId ?? `document ${index + 1}`)
      return {
        name: name ?? `${principal}, ${title}`,
        principal,
        expect,
        document:
          documentId === undefined
            ? findDocument(documents, document!, `${path}: cases[${index}]`)
            : { documentId },
      }
    }),
  }
}

function findDocument(
  documents: Readonly<Record<string, AccessCaseDocument>>,
  document: string | AccessCaseDocument,
  place: string,
): AccessCaseDocument {
  if (typeof document !== 'string') return document
  if (Object.hasOwn(documents, document)) return documents[document]!
  throw invalidCases(`${place}.document: there is no '${document}' in documents`)
}

function invalidCases(message: string): WbError {
  return new WbError('validation_error', message, { hint: 'See "Test a policy" in docs/access.md.' })
}
