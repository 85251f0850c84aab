import { expect, test } from 'vitest'
import { AuditRecord } from '../../src/contract/audit-record.ts'
import { api } from '../../src/contract/index.ts'
import type { Route } from '../../src/contract/route.ts'

/** A record with an unknown detail cannot be read, and neither can a list that contains it. */
test('an audit record can contain every path parameter of the routes that write one', () => {
  const known = new Set(['workspaceId', ...Object.keys(AuditRecord.shape.details.unwrap().shape)])
  const routes = Object.values(api).flatMap((topic): Route[] => Object.values(topic))
  const unknown = routes.flatMap(({ audit, path }) =>
    audit === undefined
      ? []
      : [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!).filter(name => !known.has(name)),
  )
  expect(unknown).toEqual([])
})
