import { z } from 'zod'
import { secretRef, timestamp } from './fields.ts'

export const McpServer = z
  .object({
    workspaceId: z.uuid(),
    mcpServerId: z.uuid(),
    label: z.string(),
    url: z.string(),
    credentialRef: secretRef.nullable(),
    enabled: z.boolean(),
    allowedTools: z
      .array(z.string())
      .nullable()
      .meta({ description: 'null is all that it offers, an empty list none' }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'McpServer' })
export type McpServer = z.output<typeof McpServer>
