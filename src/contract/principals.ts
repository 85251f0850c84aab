import { z } from 'zod'
import { timestamp } from './fields.ts'
import { roles } from './scopes.ts'

export const Principal = z
  .object({
    workspaceId: z.uuid(),
    principalId: z.string(),
    label: z.string().nullable(),
    attributes: z.record(z.string(), z.string()),
    role: z.enum(roles),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Principal' })
export type Principal = z.output<typeof Principal>
